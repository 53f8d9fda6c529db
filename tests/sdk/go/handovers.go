package main

import (
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

func othersGoOnWhenAWorkerStops(w *world) {
	// Whoever waited until the time of its own queue is over would wait for hours.
	serve := func(identity string) (stop func()) {
		return w.serve(worker.Options{Identity: identity, StickyScheduleToStartTimeout: 10 * time.Hour})
	}
	stop := serve("first")
	run := w.start(client.StartWorkflowOptions{}, Register)
	w.put(run.GetID(), 1)
	w.equal(w.values(run.GetID()), []int{1}, "by the first one")
	stop()

	w.put(run.GetID(), 2)
	defer serve("second")()
	w.equal(w.values(run.GetID()), []int{1, 2}, "by the second one")
	w.put(run.GetID(), 3, 0)
	var values []int
	w.must(run.Get(w, &values))
	w.equal(values, []int{1, 2, 3}, "the values")
	w.equal(w.values(run.GetID()), []int{1, 2, 3}, "a query after the end")

	events := w.events(run.GetID(), run.GetRunID())
	var workers []string
	for _, event := range events {
		if completed := event.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			workers = append(workers, completed.Identity)
		}
	}
	w.equal(slices.Compact(workers), []string{"first", "second"}, "who has completed the tasks")
	w.equal(count(events, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT), 0, "tasks that nobody took")
}
