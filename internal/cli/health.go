package cli

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirstream/weir/internal/rpc"
)

// health is the command that asks a process whether it serves, for containers that have nothing else to ask with. listen is where the process
// serves when it is not told.
func health(p Process, listen string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "health", Short: "ask the process on this host whether it serves; exits with 0 if so, else with 1", Args: takes(),
	}
	address := cmd.Flags().String("address", "", "`HOST:PORT` to ask (default: localhost and the port of WEIR_LISTEN, else "+listen+")")
	timeout := cmd.Flags().Duration("timeout", 3*time.Second, "how long to wait for an answer")
	wait := cmd.Flags().Duration("wait", 0, "ask again for so long until the process serves")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *address == "" {
			*address = p.ownAddress(listen)
		}
		if err := checkAddress("address", *address); err != nil {
			return err
		}
		deadline := time.Now().Add(*wait)
		for {
			err := askHealth(cmd.Context(), *address, *timeout)
			if err == nil {
				line(p.Stdout, "SERVING")
				return nil
			}
			if !time.Now().Before(deadline) {
				return err
			}
			select {
			case <-time.After(min(pollPause, time.Until(deadline))):
			case <-cmd.Context().Done():
				return context.Cause(cmd.Context())
			}
		}
	}
	return cmd
}

// ownAddress is where the process that this host runs is reached.
func (p Process) ownAddress(listen string) string {
	if set, _ := p.LookupEnv(envName("listen")); set != "" {
		listen = set
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func askHealth(ctx context.Context, address string, timeout time.Duration) error {
	conn, err := rpc.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the call has been answered
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return fmt.Errorf("nothing serves at %s: %s", address, status.Convert(err).Message())
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("the process at %s is %s", address, answer.GetStatus())
	}
	return nil
}
