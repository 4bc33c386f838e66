package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The credentials of the server.
const (
	AccessKey = "weir-test"
	SecretKey = "weir-test-secret"
)

// startTime is how long the server may take to listen.
const startTime = 30 * time.Second

// Server is an object store with its files in a directory.
type Server struct {
	Address string // host:port
	dir     string
	program string
	cmd     *exec.Cmd
	done    chan struct{}
}

// Start starts a server with the files in dir, which may have been used by a server before, and makes a bucket.
func Start(ctx context.Context, dir, bucket string) (*Server, error) {
	program, err := find(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{filepath.Join(dir, "files", bucket), filepath.Join(dir, "metadata")} {
		if err := os.MkdirAll(d, 0o755); err != nil { // a directory is a bucket
			return nil, err
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{Address: address, dir: dir, program: program}
	return s, s.Resume(ctx)
}

// find builds the server, if it is not in Go's cache.
func find(ctx context.Context) (string, error) {
	output := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "go", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
		}
		return strings.TrimSpace(string(out)), nil
	}
	root, err := output("list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	return output("-C", filepath.Join(root, "tools"), "tool", "-n", "versitygw")
}

func freeAddress() (string, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = lis.Close() }()
	return lis.Addr().String(), nil
}

// Env are the settings with which a process of ours reaches the server.
func Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_REGION=us-east-1"}
}

// Endpoint is the URL of the server.
func (s *Server) Endpoint() string { return "http://" + s.Address }

// Resume starts the server after Stop, at the same address and on the same files.
func (s *Server) Resume(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.program, "--port", s.Address, "--quiet", "posix", "--sidecar", filepath.Join(s.dir, "metadata"), filepath.Join(s.dir, "files"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	s.cmd, s.done = cmd, make(chan struct{})
	go func() {
		defer close(s.done)
		_ = cmd.Wait() // how it ended is in its log
		_ = log.Close()
	}()
	if err := s.await(ctx); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// await waits until the server listens.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.done:
			return fmt.Errorf("the object store has ended; see %s", filepath.Join(s.dir, "server.log"))
		case <-ctx.Done():
			return fmt.Errorf("the object store does not listen: %w; see %s", err, filepath.Join(s.dir, "server.log"))
		}
	}
}

// Stop ends the server, and waits until it is gone. It may be called more than once.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // an error means that it is gone already
	<-s.done
}
