// Programs with Temporal's Go SDK against the server whose HOST:PORT is the argument: a line per case.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// The first one changes a setting of the whole process, so it runs before the others, which run beside each other.
var first = struct {
	name     string
	function func(*world)
}{"side_effects_happen_once", sideEffectsHappenOnce}

var cases = map[string]func(*world){
	"versions_stay_what_they_were":       versionsStayWhatTheyWere,
	"local_activities_are_retried":       localActivitiesAreRetried,
	"activities_are_retried":             activitiesAreRetried,
	"entity_is_started_once":             entityIsStartedOnce,
	"entity_carries_its_state":           entityCarriesItsState,
	"entity_answers_after_its_end":       entityAnswersAfterItsEnd,
	"entity_is_cancelled_and_times_out":  entityIsCancelledAndTimesOut,
	"entity_is_signalled_with_its_start": entityIsSignalledWithItsStart,

	"updates_are_validated_and_answered_once": updatesAreValidatedAndAnsweredOnce,
	"updates_start_their_workflow":            updatesStartTheirWorkflow,
	"parents_hear_of_every_end":               parentsHearOfEveryEnd,
	"children_are_left_as_their_policy_says":  childrenAreLeftAsTheirPolicySays,
	"workflows_are_retried":                   workflowsAreRetried,
	"cron_runs_go_on_from_their_results":      cronRunsGoOnFromTheirResults,
	"ids_are_used_again_as_policies_say":      idsAreUsedAgainAsPoliciesSay,
	"resets_take_signals_along":               resetsTakeSignalsAlong,
	"queries_are_rejected_as_they_ask":        queriesAreRejectedAsTheyAsk,
	"attributes_and_memo_are_upserted":        attributesAndMemoAreUpserted,
}

func register(registry interface{ RegisterWorkflow(any) }) {
	for _, definition := range []any{Draw, Versioned, Local, Remote, FerryEntity, Tally, Child, Parent, Leaver, Third, Again, Register, Paint} {
		registry.RegisterWorkflow(definition)
	}
	// A replayer runs no activities.
	if served, ok := registry.(worker.ActivityRegistry); ok {
		served.RegisterActivity(SucceedAt)
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go HOST:PORT")
		os.Exit(2)
	}
	quiet := sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	c, err := client.Dial(client.Options{HostPort: os.Args[1], Logger: quiet})
	if err != nil {
		fmt.Printf("FAIL go.connect: %s\n0 passed, 1 failed\n", oneLine(err.Error()))
		os.Exit(1)
	}
	results := map[bool]int{}
	results[runCase(c, first.name, first.function)]++
	var mutex sync.Mutex
	var running sync.WaitGroup
	for name, function := range cases {
		running.Go(func() {
			passed := runCase(c, name, function)
			mutex.Lock()
			defer mutex.Unlock()
			results[passed]++
		})
	}
	running.Wait()
	fmt.Printf("%d passed, %d failed\n", results[true], results[false])
	if results[false] > 0 {
		os.Exit(1)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
