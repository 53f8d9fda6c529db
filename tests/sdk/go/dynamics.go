package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Anything is a workflow of any type: it hears two signals of any name, and calls an activity that nobody has written.
func Anything(ctx workflow.Context, arguments converter.EncodedValues) ([]string, error) {
	var first string
	if err := arguments.Get(&first); err != nil {
		return nil, err
	}
	said := []string{workflow.GetInfo(ctx).WorkflowType.Name, first}
	for len(said) < 4 {
		err := workflow.Await(ctx, func() bool { return len(workflow.GetUnhandledSignalNames(ctx)) > 0 })
		if err != nil {
			return nil, err
		}
		for _, name := range workflow.GetUnhandledSignalNames(ctx) {
			var text string
			workflow.GetSignalChannel(ctx, name).Receive(ctx, &text)
			said = append(said, name+": "+text)
		}
	}
	slices.Sort(said[2:])
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	var answer string
	err := workflow.ExecuteActivity(ctx, "an activity of any type", first).Get(ctx, &answer)
	return append(said, answer), err
}

// DoAnything is an activity of any type.
func DoAnything(ctx context.Context, arguments converter.EncodedValues) (string, error) {
	var first string
	err := arguments.Get(&first)
	return fmt.Sprint(activity.GetInfo(ctx).ActivityType.Name, " of ", first), err
}

func dynamicDefinitionsAnswerToAnyName(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, "a workflow of any type", "one")
	w.must(w.SignalWorkflow(w, run.GetID(), "", "this signal", "first"))
	w.must(w.SignalWorkflow(w, run.GetID(), "", "that signal", "second"))
	var said []string
	w.must(run.Get(w, &said))
	expected := []string{"a workflow of any type", "one", "that signal: second", "this signal: first", "an activity of any type of one"}
	w.equal(said, expected, "what was called")
}
