package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// hostList is the exact set of Host values and Origins that are answered. A browser page of
// another site reaches loopback with its own Host after DNS rebinding, and with its own
// Origin without it.
type hostList struct {
	hosts   map[string]bool
	origins map[string]bool
}

func newHostList(listen, public string) (hostList, error) {
	l := hostList{hosts: map[string]bool{}, origins: map[string]bool{}}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return l, fmt.Errorf("mcp: the listen address is not host:port")
	}
	for _, h := range []string{"127.0.0.1", "localhost", "::1", host} {
		if h != "" {
			l.hosts[strings.ToLower(net.JoinHostPort(h, port))] = true
		}
	}
	if public == "" {
		return l, nil
	}
	u, err := url.Parse(public)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return l, fmt.Errorf("mcp: the public URL must look like https://name")
	}
	h := strings.ToLower(u.Host)
	l.hosts[h] = true
	l.origins[u.Scheme+"://"+h] = true
	if u.Port() == "" {
		l.hosts[h+map[string]string{"https": ":443", "http": ":80"}[u.Scheme]] = true
	}
	return l, nil
}

func (l hostList) host(r *http.Request) bool { return l.hosts[strings.ToLower(r.Host)] }

// origin allows a request without Origin, pages served from this machine, and the public
// name. Anything else, "null" included, is a foreign page.
func (l hostList) origin(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	if len(values) > 1 {
		return false
	}
	o := strings.ToLower(values[0])
	if l.origins[o] {
		return true
	}
	u, err := url.Parse(o)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil {
		return false
	}
	h := u.Hostname()
	ip := net.ParseIP(h)
	return h == "localhost" || ip != nil && ip.IsLoopback()
}
