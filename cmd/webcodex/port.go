package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Ports of a data directory's first `up` (ruling 15).
const (
	firstPort  = 8787
	portsTried = 100
	// A remembered port that is taken is tried again this often.
	reopenTries = 5
	reopenPause = 50 * time.Millisecond
)

// listen takes the port hosts connect to. With an explicit address it is that one; else the
// remembered port, or at first the first free one from firstPort. It never picks another in
// place of a taken one: whoever sits there would get the token of a configured host.
// Where the address leaves the port open, the one of the life before, 0 for none, is taken again:
// its hosts are there. remember is the port to keep, 0 for none.
func listen(explicit string, saved, before int) (l net.Listener, remember int, err error) {
	if explicit != "" {
		addr, err := loopback(explicit)
		if err != nil {
			return nil, 0, err
		}
		if addr.Port() == 0 && before != 0 {
			l, err := reopen(netip.AddrPortFrom(addr.Addr(), uint16(before)))
			return l, 0, err
		}
		l, err := listenOn(addr)
		return l, int(addr.Port()), err
	}
	local := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if saved != 0 {
		l, err := reopen(netip.AddrPortFrom(local, uint16(saved)))
		return l, saved, err
	}
	for port := firstPort; port < firstPort+portsTried; port++ {
		l, err := net.Listen("tcp", netip.AddrPortFrom(local, uint16(port)).String())
		if err == nil {
			return l, port, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, 0, failf(exitFailed, "no port can be opened: %v", cause(err))
		}
	}
	return nil, 0, failf(exitFailed, "ports %d to %d are all taken: choose one with --listen 127.0.0.1:PORT",
		firstPort, firstPort+portsTried-1)
}

func listenOn(addr netip.AddrPort) (net.Listener, error) {
	l, err := net.Listen("tcp", addr.String())
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failf(exitFailed, "port %d is taken by %s: end it, or choose another with --listen and tell the hosts",
			addr.Port(), portHolder(addr.Port()))
	}
	return nil, failf(exitFailed, "port %d cannot be opened: %v", addr.Port(), cause(err))
}

// reopen takes our own port again. A server that was killed while it started a child holds
// the port until the child has begun, so a taken port is tried again for a moment.
func reopen(addr netip.AddrPort) (l net.Listener, err error) {
	for range reopenTries {
		l, err = net.Listen("tcp", addr.String())
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		time.Sleep(reopenPause)
	}
	if err == nil {
		return l, nil
	}
	return listenOn(addr)
}

// loopback reads HOST:PORT and refuses an address that other machines could reach: the
// token would cross the network in clear. A tunnel with TLS of its own connects to loopback.
func loopback(s string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return netip.AddrPort{}, usagef("HOST:PORT, for example 127.0.0.1:%d", firstPort)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, usagef("the port is a number from 0 to 65535")
	}
	if host == "localhost" || host == "" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return netip.AddrPort{}, usagef("a loopback address only; for other machines put a TLS tunnel before it and name its address with --public-url")
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}

func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func portHolder(port uint16) string {
	if name, pid, ok := holderOf(port); ok {
		return fmt.Sprintf("%s (pid %d)", clean(name), pid)
	}
	return "another program"
}
