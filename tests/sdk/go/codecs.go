package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Echo answers what it is told.
func Echo(_ context.Context, text string) (string, error) { return text, nil }

// Echoed answers what its activity answers.
func Echoed(ctx workflow.Context, text string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	var said string
	err := workflow.ExecuteActivity(ctx, Echo, text).Get(ctx, &said)
	return said, err
}

func encodedPayloadsAndFailuresAreOpaque(w *world) {
	codec := converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})
	zip := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec)
	failures := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: zip, EncodeCommonAttributes: true,
	})
	w.use(client.Options{DataConverter: zip, FailureConverter: failures})
	defer w.serve(worker.Options{})()
	text := strings.Repeat("a", 5000)
	run := w.start(client.StartWorkflowOptions{Memo: map[string]any{"note": "zipped"}}, Echoed, text)
	w.equal(w.result(run), text, "the result")
	described, err := w.DescribeWorkflowExecution(w, run.GetID(), run.GetRunID())
	w.must(err)
	var note string
	memo := described.WorkflowExecutionInfo.Memo.Fields["note"]
	w.must(zip.FromPayload(memo, &note))
	w.equal([]string{string(memo.Metadata["encoding"]), note}, []string{"binary/zlib", "zipped"}, "the memo")
	events := w.events(run.GetID(), run.GetRunID())
	result := events[len(events)-1].GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads()[0]
	w.equal(string(result.Metadata["encoding"]), "binary/zlib", "the result in the history")

	register := w.start(client.StartWorkflowOptions{}, Register)
	w.put(register.GetID(), 1, 2)
	w.equal(w.values(register.GetID()), []int{1, 2}, "signals and a query")

	failing := w.start(client.StartWorkflowOptions{}, Child, "fail")
	var failed *temporal.ApplicationError
	err = failing.Get(w, nil)
	w.that(errors.As(err, &failed) && failed.Message() == "as it was told" && failed.Type() == "Told", "the failure", err)
	events = w.events(failing.GetID(), failing.GetRunID())
	failure := events[len(events)-1].GetWorkflowExecutionFailedEventAttributes().GetFailure()
	w.equal(failure.Message, "Encoded failure", "its message in the history")
	w.equal(string(failure.EncodedAttributes.Metadata["encoding"]), "binary/zlib", "its encoded attributes")
}
