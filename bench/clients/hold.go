package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// heldConnections counts what hold keeps, or what it found on a reuse.
type heldConnections struct {
	Held     int            `json:"held"`
	Failures map[string]int `json:"failures"`
}

// hold opens keep-alive connections, does one request on each, and then keeps
// them idle. On the order "reuse" it does a second request on every one of
// them, which shows that each was still served. It ends with its input.
func hold(arguments []string) error {
	flags := flag.NewFlagSet("hold", flag.ExitOnError)
	address := flags.String("address", "", "where the server listens")
	host := flags.String("host", "bench.test", "server name and Host")
	path := flags.String("path", "/1k", "path of each request")
	size := flags.Int("size", 1024, "bytes of each answer")
	count := flags.Int("count", 10_000, "connections to hold")
	parallel := flags.Int("parallel", 4, "requests at a time; few, so that the memory of the busy does not count as that of the idle")
	secured := flags.Bool("tls", false, "connect with TLS")
	flags.Parse(arguments)

	to := target{address: *address, host: *host, tls: *secured}
	connections := make([]net.Conn, *count)
	report(eachOf(*count, *parallel, func(n int) error {
		conn, err := to.dial(n)
		if err != nil {
			return err
		}
		connections[n] = conn
		return expectBody(conn, to.host, *path, *size)
	}))

	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if orders.Text() != "reuse" {
			return fmt.Errorf("unknown order %q", orders.Text())
		}
		report(eachOf(*count, *parallel, func(n int) error {
			if connections[n] == nil {
				return fmt.Errorf("never connected")
			}
			return expectBody(connections[n], to.host, *path, *size)
		}))
	}
	return orders.Err()
}

func expectBody(conn net.Conn, host, path string, size int) error {
	body, err := get(conn, host, path, "keep-alive")
	if err == nil && len(body) != size {
		err = fmt.Errorf("body of %d bytes", len(body))
	}
	return err
}

// eachOf runs an action for every number below count, a few at a time.
func eachOf(count, parallel int, action func(n int) error) heldConnections {
	result := heldConnections{Failures: map[string]int{}}
	var lock sync.Mutex
	var group sync.WaitGroup
	for worker := range parallel {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := worker; n < count; n += parallel {
				err := action(n)
				lock.Lock()
				if err != nil {
					result.Failures[err.Error()]++
				} else {
					result.Held++
				}
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	return result
}

// freshResult is how long new clients waited from connect to the last byte.
type freshResult struct {
	Count    int            `json:"count"`
	Failures map[string]int `json:"failures"`
	MedianMs float64        `json:"median_ms"`
	P99Ms    float64        `json:"p99_ms"`
	MaxMs    float64        `json:"max_ms"`
}

// fresh opens one new connection after another and times one request on each.
func fresh(arguments []string) error {
	flags := flag.NewFlagSet("fresh", flag.ExitOnError)
	address := flags.String("address", "", "where the server listens")
	host := flags.String("host", "bench.test", "server name and Host")
	path := flags.String("path", "/1k", "path of each request")
	size := flags.Int("size", 1024, "bytes of each answer")
	count := flags.Int("count", 200, "new connections")
	pause := flags.Duration("pause", 5*time.Millisecond, "between two of them")
	flags.Parse(arguments)

	to := target{address: *address, host: *host}
	result := freshResult{Count: *count, Failures: map[string]int{}}
	var waits []float64
	for n := range *count {
		start := time.Now()
		conn, err := to.dial(n)
		if err == nil {
			err = expectBody(conn, to.host, *path, *size)
			conn.Close()
		}
		if err != nil {
			result.Failures[err.Error()]++
		} else {
			waits = append(waits, float64(time.Since(start).Microseconds())/1000)
		}
		time.Sleep(*pause)
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		result.MedianMs = waits[len(waits)/2]
		result.P99Ms = waits[len(waits)*99/100]
		result.MaxMs = waits[len(waits)-1]
	}
	report(result)
	return nil
}
