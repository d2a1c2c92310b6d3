// Command crs is what check_crs.py drives: albedo, the Core Rule Set's test backend, and go-ftw, the
// runner of its tests. Both as the projects publish them; here is only their wiring, so that one
// module pins their versions.
//
//	crs albedo PORT
//	crs test -tests DIR -log FILE -port PORT [-include PATTERN]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/coreruleset/albedo/server"
	"github.com/coreruleset/go-ftw/v2/config"
	"github.com/coreruleset/go-ftw/v2/output"
	"github.com/coreruleset/go-ftw/v2/runner"
	"github.com/coreruleset/go-ftw/v2/test"
	"github.com/rs/zerolog"
)

// What go-ftw waits for: a marker's line is in the log a few milliseconds after its request.
const (
	connectTimeout = 10 * time.Second
	readTimeout    = 30 * time.Second
	markerRetries  = 2000
	markerLines    = 2000
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: crs albedo PORT | crs test [flags]"))
	}
	switch os.Args[1] {
	case "albedo":
		port, err := strconv.Atoi(os.Args[2])
		if err != nil {
			fail(err)
		}
		server.Start("127.0.0.1", port)
	case "test":
		fail(run(os.Args[2:]))
	default:
		fail(fmt.Errorf("neither albedo nor test: %s", os.Args[1]))
	}
}

// run sends every test and writes go-ftw's statistics, as JSON, to standard output.
func run(arguments []string) error {
	flags := flag.NewFlagSet("test", flag.ExitOnError)
	tests := flags.String("tests", "", "folder of the tests")
	log := flags.String("log", "", "the gate's log of matched rules")
	port := flags.Int("port", 0, "the gate's port")
	include := flags.String("include", "", "pattern of the tests to run")
	_ = flags.Parse(arguments)
	zerolog.SetGlobalLevel(zerolog.ErrorLevel)

	address := "127.0.0.1"
	settings := config.NewDefaultConfig()
	settings.LogFile = *log
	settings.MaxMarkerRetries = markerRetries
	settings.MaxMarkerLogLines = markerLines
	// Where the gate is. No test's request or expectation is changed.
	settings.TestOverride.Overrides.DestAddr = &address
	settings.TestOverride.Overrides.Port = port
	running := config.NewRunnerConfiguration(settings)
	running.ConnectTimeout = connectTimeout
	running.ReadTimeout = readTimeout
	if *include != "" {
		pattern, err := regexp.Compile(*include)
		if err != nil {
			return err
		}
		running.Include = pattern
		running.Exclude = regexp.MustCompile(".")
	}

	found, err := test.GetTestsFromFiles(filepath.Join(*tests, "**", "*.yaml"))
	if err != nil {
		return err
	}
	result, err := runner.Run(running, found, output.NewOutput("quiet", os.Stderr))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result.Stats)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
