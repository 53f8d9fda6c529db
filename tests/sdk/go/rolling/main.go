// Starts, signals and reads workflows with Temporal's Go SDK while nodes are replaced: rolling HOST:PORT...
//
// It goes on until its input ends. Then each start that was acknowledged must end with the right result.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"everlog/tests/sdk/patience"
)

const (
	queue   = "rolling-go"
	writers = 4
	// A call that a node does not answer is made at the next one.
	callWithin = 10 * time.Second
	// Between two calls of a writer.
	rest = 50 * time.Millisecond
)

// Doubles a number by an activity, after a signal has come.
func step(ctx workflow.Context, value int) (int, error) {
	if err := workflow.Sleep(ctx, 200*time.Millisecond); err != nil {
		return 0, err
	}
	options := workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Second}
	var result int
	doubling := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), double, value)
	if err := doubling.Get(ctx, &result); err != nil {
		return 0, err
	}
	workflow.GetSignalChannel(ctx, "go-on").Receive(ctx, nil)
	return result, nil
}

func double(value int) (int, error) { return 2 * value, nil }

type started struct {
	id    string
	value int
}

// Clients at all nodes, and what was acknowledged to them.
type load struct {
	clients []client.Client
	mutex   sync.Mutex
	acked   []started
}

// What an earlier try has done counts, whose answer was lost with its node: the run is there, or has ended by its signal.
func isDone(err error) bool {
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	var ended *serviceerror.NotFound
	return err == nil || errors.As(err, &exists) || errors.As(err, &ended) && strings.Contains(ended.Error(), "already completed")
}

// Calls at one node after the other until one answers.
func (l *load) insist(call func(context.Context, client.Client) error) error {
	var last error
	for end := time.Now().Add(patience.Most()); time.Now().Before(end); {
		for _, at := range l.clients {
			ctx, cancel := context.WithTimeout(context.Background(), callWithin)
			last = call(ctx, at)
			cancel()
			if isDone(last) {
				return nil
			}
		}
		time.Sleep(rest)
	}
	return last
}

func (l *load) write(writer int, stopped <-chan struct{}) error {
	for number := 0; ; number++ {
		select {
		case <-stopped:
			return nil
		case <-time.After(rest):
		}
		id := fmt.Sprintf("rolling-go-%d-%d", writer, number)
		options := client.StartWorkflowOptions{ID: id, TaskQueue: queue}
		start := func(ctx context.Context, at client.Client) error {
			_, err := at.ExecuteWorkflow(ctx, options, step, number)
			return err
		}
		if err := l.insist(start); err != nil {
			return fmt.Errorf("start of %s: %w", id, err)
		}
		l.mutex.Lock()
		l.acked = append(l.acked, started{id, number})
		l.mutex.Unlock()
		signal := func(ctx context.Context, at client.Client) error {
			return at.SignalWorkflow(ctx, id, "", "go-on", nil)
		}
		if err := l.insist(signal); err != nil {
			return fmt.Errorf("signal to %s: %w", id, err)
		}
	}
}

func (l *load) wrong() []string {
	var wrong []string
	for _, one := range l.acked {
		var result int
		err := l.insist(func(ctx context.Context, at client.Client) error {
			return at.GetWorkflow(ctx, one.id, "").Get(ctx, &result)
		})
		if err != nil || result != 2*one.value {
			wrong = append(wrong, fmt.Sprintf("%s: %d, %v", one.id, result, err))
		}
	}
	return wrong
}

func run(addresses []string) ([]string, int, error) {
	var load load
	logger := sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, address := range addresses {
		at, err := client.Dial(client.Options{HostPort: address, Logger: logger})
		if err != nil {
			return nil, 0, err
		}
		defer at.Close()
		load.clients = append(load.clients, at)
		worker := worker.New(at, queue, worker.Options{})
		worker.RegisterWorkflow(step)
		worker.RegisterActivity(double)
		if err := worker.Start(); err != nil {
			return nil, 0, err
		}
		defer worker.Stop()
	}
	stopped, ends := make(chan struct{}), make(chan error, writers)
	for writer := range writers {
		go func() { ends <- load.write(writer, stopped) }()
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return nil, 0, err
	}
	close(stopped)
	var failures []string
	for range writers {
		if err := <-ends; err != nil {
			failures = append(failures, err.Error())
		}
	}
	return append(failures, load.wrong()...), len(load.acked), nil
}

func main() {
	failures, acked, err := run(os.Args[1:])
	if err != nil {
		failures = append(failures, err.Error())
	}
	if acked == 0 {
		failures = append(failures, "nothing was acknowledged")
	}
	if len(failures) > 0 {
		fmt.Println("FAIL " + strings.Join(failures, "\nFAIL "))
	}
	fmt.Printf("%d acknowledged workflows of the Go SDK, %d failures\n", acked, len(failures))
	if len(failures) > 0 {
		os.Exit(1)
	}
}
