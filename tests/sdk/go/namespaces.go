package main

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/durationpb"
)

// within makes a namespace, and is the same in there once it can be used.
func (w *world) within(namespaces client.NamespaceClient, name string) *world {
	w.must(namespaces.Register(w, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	other := w.with(client.Options{Namespace: name})
	w.until(func() bool {
		// Of several nodes each has some of these.
		for n := range 20 {
			_, err := other.DescribeWorkflowExecution(w, fmt.Sprint("nobody-", n), "")
			var notFound *serviceerror.NotFound
			if !errors.As(err, &notFound) {
				return false
			}
		}
		return true
	})
	return other
}

func namespacesKeepEqualNamesApart(w *world) {
	namespaces, err := client.NewNamespaceClient(client.Options{HostPort: w.address, Logger: quiet})
	w.must(err)
	defer namespaces.Close()
	name := w.id()
	other := w.within(namespaces, name)
	defer other.Close()

	stop := w.serve(worker.Options{})
	defer stop()
	run := w.start(client.StartWorkflowOptions{}, Register)
	// Of the same id, and on a queue of the same name.
	twin := other.start(client.StartWorkflowOptions{ID: run.GetID()}, Register)
	w.that(run.GetRunID() != twin.GetRunID(), "two runs", run.GetRunID())
	w.put(run.GetID(), 1)
	other.put(run.GetID(), 2)
	w.equal(w.values(run.GetID()), []int{1}, "what the one was told")
	w.put(run.GetID(), 0)
	w.must(run.Get(w, nil))
	w.equal(other.told(twin).Status, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "the other one goes on")
	started := count(other.events(twin.GetID(), twin.GetRunID()), enums.EVENT_TYPE_WORKFLOW_TASK_STARTED)
	w.equal(started, 0, "its tasks that went to a worker of another namespace")
	stop()

	stop = other.serve(worker.Options{})
	defer stop()
	other.put(run.GetID(), 0)
	var values []int
	w.must(twin.Get(w, &values))
	w.equal(values, []int{2}, "what the other one was told")
	replayed, _ := other.closeAndReplay()
	w.equal(replayed, 1, "histories that are replayed")
	stop()

	_, err = w.OperatorService().DeleteNamespace(w, &operatorservice.DeleteNamespaceRequest{Namespace: name})
	w.must(err)
	w.until(func() bool {
		_, err := namespaces.Describe(w, name)
		var unknown *serviceerror.NamespaceNotFound
		return errors.As(err, &unknown)
	})
	w.equal(w.told(run).Status, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the one is what it was")
}
