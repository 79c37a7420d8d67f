package pod

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Addresses that every probe tries, besides those of its arguments.
const (
	metadataService = "169.254.169.254:80" // of cloud providers
	internetAddress = "1.1.1.1:443"
)

// probeTime is how long one round waits for answers, and the pause after a round with
// an answer.
const probeTime = 500 * time.Millisecond

// target is an address that a pod without a network must not reach.
type target struct {
	name    string
	address netip.AddrPort
	udp     bool // a DNS server
}

// Probe tries to reach the cluster's DNS and API server, the metadata service of cloud
// providers, an address in the internet, and the given addresses (HOST:PORT), over and
// over until nothing answers in one round or the time is up. It writes a line for each
// target of the last round, "blocked NAME" or "reached NAME", and then "done".
//
// A refused connection counts as an answer: the packets arrived.
func Probe(w io.Writer, limit time.Duration, addresses []string) error {
	targets, err := probeTargets(addresses)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(limit)
	for {
		reached := probeOnce(targets)
		if !slices.Contains(reached, true) || time.Now().After(deadline) {
			return writeProbe(w, targets, reached)
		}
		time.Sleep(probeTime)
	}
}

func writeProbe(w io.Writer, targets []target, reached []bool) error {
	var b strings.Builder
	for i, t := range targets {
		result := "blocked"
		if reached[i] {
			result = "reached"
		}
		fmt.Fprintf(&b, "%s %s\n", result, t.name)
	}
	b.WriteString("done\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func probeTargets(addresses []string) ([]target, error) {
	var targets []target
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(resolv)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		ip, err := netip.ParseAddr(fields[1])
		if err != nil || ip.IsLoopback() {
			continue
		}
		targets = append(targets, target{"DNS " + ip.String(), netip.AddrPortFrom(ip, 53), true})
	}
	if host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"); host != "" {
		if ip, err := netip.ParseAddr(host); err == nil {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("port of the API server: %w", err)
			}
			addresses = append(addresses, netip.AddrPortFrom(ip, uint16(n)).String())
		}
	}
	for _, a := range append(addresses, metadataService, internetAddress) {
		addr, err := netip.ParseAddrPort(a)
		if err != nil {
			return nil, fmt.Errorf("probe %.60q: %w", a, err)
		}
		targets = append(targets, target{addr.String(), addr, false})
	}
	return targets, nil
}

// dnsQuery asks for the name servers of the root.
var dnsQuery = []byte{0x6d, 0x69, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1}

// probeOnce reports which targets answer within probeTime.
func probeOnce(targets []target) []bool {
	reached := make([]bool, len(targets))
	polls := make([]unix.PollFd, len(targets))
	for i, t := range targets {
		fd, err := dial(t)
		polls[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLOUT}
		if t.udp {
			polls[i].Events = unix.POLLIN
		}
		if fd < 0 {
			reached[i] = errors.Is(err, unix.ECONNREFUSED)
			continue
		}
		defer unix.Close(fd) //nolint:errcheck // only a few
	}
	deadline := time.Now().Add(probeTime)
	for {
		// Answers that have arrived count, even if the probe was delayed.
		wait := max(0, time.Until(deadline))
		n, err := unix.Poll(polls, int(wait.Milliseconds())+1)
		if n == 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return reached
		}
		for i := range polls {
			if polls[i].Fd >= 0 && polls[i].Revents != 0 {
				reached[i] = answered(int(polls[i].Fd))
				polls[i].Fd = -1 // poll ignores it
			}
		}
	}
}

// answered reports whether the peer has answered, as opposed to an error such as "no
// route to host".
func answered(fd int) bool {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return err == nil && (code == 0 || unix.Errno(code) == unix.ECONNREFUSED)
}

// dial starts a connection. It returns -1 if that fails at once.
func dial(t target) (int, error) {
	kind := unix.SOCK_STREAM
	if t.udp {
		kind = unix.SOCK_DGRAM
	}
	family, ip, port := unix.AF_INET6, t.address.Addr().Unmap(), int(t.address.Port())
	var to unix.Sockaddr = &unix.SockaddrInet6{Port: port, Addr: ip.As16()}
	if ip.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, to)
	if err == nil && t.udp {
		_, err = unix.Write(fd, dnsQuery)
	}
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
