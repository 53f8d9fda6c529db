// A worker and a run with Temporal's Go SDK over TLS, as its options say: it prints the result.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func greet(_ context.Context, name string) (string, error) { return "Hello, " + name + "!", nil }

func greeting(ctx workflow.Context, name string) (told string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	err = workflow.ExecuteActivity(ctx, greet, name).Get(ctx, &told)
	return
}

func trust(ca, name, certificate, key string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: name}
	config.RootCAs.AppendCertsFromPEM(text)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func run(address string, config *tls.Config, apiKey string) (told string, err error) {
	options := client.Options{
		HostPort:          address,
		Logger:            sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		ConnectionOptions: client.ConnectionOptions{TLS: config},
	}
	if apiKey != "" {
		options.Credentials = client.NewAPIKeyStaticCredentials(apiKey)
	}
	c, err := client.Dial(options)
	if err != nil {
		return "", err
	}
	defer c.Close()
	queue := "greetings-" + uuid.NewString()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(greeting, workflow.RegisterOptions{Name: "Greeting"})
	w.RegisterActivity(greet)
	if err := w.Start(); err != nil {
		return "", err
	}
	defer w.Stop()
	start := client.StartWorkflowOptions{ID: queue, TaskQueue: queue}
	started, err := c.ExecuteWorkflow(context.Background(), start, "Greeting", "world")
	if err != nil {
		return "", err
	}
	err = started.Get(context.Background(), &told)
	return
}

func main() {
	ca := flag.String("ca", "", "the file of the authority that is trusted; without one, no TLS")
	name := flag.String("name", "", "the name that the server must have")
	certificate := flag.String("certificate", "", "the file of the certificate that is shown")
	key := flag.String("key", "", "the file of its key")
	apiKey := flag.String("api-key", "", "the key that is shown")
	flag.Parse()
	config, err := trust(*ca, *name, *certificate, *key)
	told := ""
	if err == nil {
		told, err = run(flag.Arg(0), config, *apiKey)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(told)
}
