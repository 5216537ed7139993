package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holderOf names the process that listens on a TCP port, as far as /proc shows it to us.
func holderOf(port uint16) (name string, pid int, ok bool) {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningInodes(table, port, inodes)
	}
	if len(inodes) == 0 {
		return "", 0, false
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil || !inodes[target] {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return strings.TrimSpace(string(comm)), pid, err == nil
	}
	return "", 0, false
}

// listeningInodes collects "socket:[inode]" of the listeners in one table of the kernel.
func listeningInodes(table string, port uint16, into map[string]bool) {
	const state, listening = 3, "0A"
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	want := fmt.Sprintf(":%04X", port)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		c := strings.Fields(sc.Text())
		if len(c) > 9 && strings.HasSuffix(c[1], want) && c[state] == listening {
			into["socket:["+c[9]+"]"] = true
		}
	}
}
