package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// tripsPerRun is after how many trips a ferry goes on in a new run.
const tripsPerRun = 15

// Ferry is an entity: it lives until it is laid up, and is changed by signals.
type Ferry struct {
	Trips      int
	Passengers int
	LastTrip   int
	OutOfOrder int
	Runs       int
	LaidUp     bool
}

// Trip is one trip; numbers grow with each trip that is signalled.
type Trip struct {
	Number     int
	Passengers int
}

// FerryEntity takes trips from its signal channel, in order, and carries its state from run to run.
func FerryEntity(ctx workflow.Context, carried *Ferry) (Ferry, error) {
	ferry := Ferry{Runs: 1, LastTrip: -1}
	if carried != nil {
		ferry = *carried
		ferry.Runs++
	}
	err := workflow.SetQueryHandler(ctx, "look", func() (Ferry, error) { return ferry, nil })
	if err != nil {
		return ferry, err
	}
	trips, layUp := workflow.GetSignalChannel(ctx, "trip"), workflow.GetSignalChannel(ctx, "lay up")
	here := 0
	sail := func(trip Trip) {
		if trip.Number <= ferry.LastTrip {
			ferry.OutOfOrder++
		}
		ferry.LastTrip = trip.Number
		ferry.Trips++
		ferry.Passengers += trip.Passengers
		here++
	}
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(trips, func(channel workflow.ReceiveChannel, _ bool) {
		var trip Trip
		channel.Receive(ctx, &trip)
		sail(trip)
	})
	selector.AddReceive(layUp, func(channel workflow.ReceiveChannel, _ bool) {
		channel.Receive(ctx, nil)
		ferry.LaidUp = true
	})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	for !ferry.LaidUp && here < tripsPerRun && ctx.Err() == nil {
		selector.Select(ctx)
	}
	if ctx.Err() != nil {
		return ferry, ctx.Err()
	}
	// What stands in the channels belongs to this run.
	for trip := (Trip{}); trips.ReceiveAsync(&trip); trip = (Trip{}) {
		sail(trip)
	}
	if ferry.LaidUp || layUp.ReceiveAsync(nil) {
		ferry.LaidUp = true
		return ferry, nil
	}
	return ferry, workflow.NewContinueAsNewError(ctx, FerryEntity, &ferry)
}

func (w *world) trip(id string, number, passengers int) {
	w.must(w.SignalWorkflow(w, id, "", "trip", Trip{number, passengers}))
}

func (w *world) look(id string) Ferry {
	value, err := w.QueryWorkflow(w, id, "", "look")
	w.must(err)
	var ferry Ferry
	w.must(value.Get(&ferry))
	return ferry
}

func (w *world) laidUp(id string) Ferry {
	w.must(w.SignalWorkflow(w, id, "", "lay up", nil))
	var ferry Ferry
	w.must(w.GetWorkflow(w, id, "").Get(w, &ferry))
	return ferry
}

func entityIsStartedOnce(w *world) {
	defer w.serve(worker.Options{})()
	first := w.start(client.StartWorkflowOptions{}, FerryEntity, nil)
	_, err := w.tryStart(client.StartWorkflowOptions{ID: first.GetID()}, FerryEntity, nil)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	w.that(errors.As(err, &already) && already.RunId == first.GetRunID(), "the second start is refused", err)
	options := client.StartWorkflowOptions{
		ID: first.GetID(), WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}
	same := w.start(options, FerryEntity, nil)
	w.equal(same.GetRunID(), first.GetRunID(), "a start that takes what is there")
	w.laidUp(first.GetID())
}

func entityCarriesItsState(w *world) {
	defer w.serve(worker.Options{})()
	first := w.start(client.StartWorkflowOptions{}, FerryEntity, nil)
	for n := range 100 {
		w.trip(first.GetID(), n, n)
		if n%10 == 9 {
			w.equal(w.look(first.GetID()).Trips, n+1, "a query sees every trip before it")
		}
	}
	ferry := w.laidUp(first.GetID())
	w.equal([]int{ferry.Trips, ferry.Passengers, ferry.LastTrip, ferry.OutOfOrder}, []int{100, 4950, 99, 0}, "the state")
	runs := w.chain(first.GetID(), first.GetRunID())
	w.that(len(runs) == ferry.Runs && len(runs) >= 3, "runs", len(runs), ferry.Runs)
	signals := 0
	for _, events := range runs {
		w.equal(events[0].GetWorkflowExecutionStartedEventAttributes().FirstExecutionRunId, first.GetRunID(), "the first run")
		signals += count(events, enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
	}
	w.equal(signals, 101, "signals in the histories")
}

func entityAnswersAfterItsEnd(w *world) {
	defer w.serve(worker.Options{})()
	first := w.start(client.StartWorkflowOptions{}, FerryEntity, nil)
	w.trip(first.GetID(), 0, 7)
	w.laidUp(first.GetID())
	ferry := w.look(first.GetID())
	w.that(ferry.LaidUp && ferry.Passengers == 7, "the query", ferry)
	err := w.SignalWorkflow(w, first.GetID(), "", "trip", Trip{1, 1})
	var notFound *serviceerror.NotFound
	w.that(errors.As(err, &notFound), "a signal after the end is refused", err)
	w.start(client.StartWorkflowOptions{ID: first.GetID()}, FerryEntity, nil)
	w.equal(w.look(first.GetID()).Trips, 0, "trips of the next one of this id")
}

func entityIsCancelledAndTimesOut(w *world) {
	defer w.serve(worker.Options{})()
	cancelled := w.start(client.StartWorkflowOptions{}, FerryEntity, nil)
	expiring := w.start(client.StartWorkflowOptions{WorkflowExecutionTimeout: 2 * time.Second}, FerryEntity, nil)
	w.look(cancelled.GetID())
	w.must(w.CancelWorkflow(w, cancelled.GetID(), ""))
	err := cancelled.Get(w, nil)
	var wasCancelled *temporal.CanceledError
	w.that(errors.As(err, &wasCancelled), "it is cancelled", err)
	err = expiring.Get(w, nil)
	var timedOut *temporal.TimeoutError
	w.that(errors.As(err, &timedOut), "it times out", err)
}

func entityIsSignalledWithItsStart(w *world) {
	defer w.serve(worker.Options{})()
	id := w.id()
	var senders sync.WaitGroup
	runs, failures := make([]string, 10), make([]error, 10)
	for n := range 10 {
		senders.Go(func() {
			options := client.StartWorkflowOptions{ID: id, TaskQueue: w.queue}
			run, err := w.SignalWithStartWorkflow(w, id, "trip", Trip{n, 1}, options, FerryEntity, nil)
			if failures[n] = err; err == nil {
				runs[n] = run.GetRunID()
				w.remember(run.GetID(), run.GetRunID())
			}
		})
	}
	senders.Wait()
	for n := range 10 {
		w.must(failures[n])
		w.equal(runs[n], runs[0], fmt.Sprint("the run of signal ", n))
	}
	w.equal(w.laidUp(id).Passengers, 10, "every signal once")
}
