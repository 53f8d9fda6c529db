// Programs with Temporal's Go SDK against the server whose HOST:PORT is the argument: a line per case.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
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
	"builds_are_told_by_their_runs":           buildsAreToldByTheirRuns,
	"runs_go_back_to_before_a_bad_build":      runsGoBackToBeforeABadBuild,
	"queues_hold_their_activities_back":       queuesHoldTheirActivitiesBack,
	"queues_are_configured":                   queuesAreConfigured,
	"build_ids_are_kept_in_sets":              buildIDsAreKeptInSets,
	"workers_tell_of_themselves":              workersTellOfThemselves,
	"namespaces_keep_equal_names_apart":       namespacesKeepEqualNamesApart,

	"runs_that_are_deleted_are_forgotten":      runsThatAreDeletedAreForgotten,
	"activities_are_completed_from_outside":    activitiesAreCompletedFromOutside,
	"cancellations_are_heard_of_outside":       cancellationsAreHeardOfOutside,
	"late_results_from_outside_are_refused":    lateResultsFromOutsideAreRefused,
	"changed_code_fails_its_task":              changedCodeFailsItsTask,
	"broken_code_fails_its_task":               brokenCodeFailsItsTask,
	"headers_travel_with_everything":           headersTravelWithEverything,
	"encoded_payloads_and_failures_are_opaque": encodedPayloadsAndFailuresAreOpaque,
	"dynamic_definitions_answer_to_any_name":   dynamicDefinitionsAnswerToAnyName,
	"eager_starts_bring_their_task_along":      eagerStartsBringTheirTaskAlong,
	"eager_activities_run_once":                eagerActivitiesRunOnce,

	"runs_are_described":                         runsAreDescribed,
	"pending_work_is_described":                  pendingWorkIsDescribed,
	"stacks_and_metadata_are_queried":            stacksAndMetadataAreQueried,
	"histories_come_in_pages":                    historiesComeInPages,
	"others_go_on_when_a_worker_stops":           othersGoOnWhenAWorkerStops,
	"what_is_too_large_is_refused":               whatIsTooLargeIsRefused,
	"workers_heed_the_limits_that_they_are_told": workersHeedTheLimitsThatTheyAreTold,
	"limits_hold_that_no_worker_heeds":           limitsHoldThatNoWorkerHeeds,
	"updates_in_flight_are_bounded":              updatesInFlightAreBounded,

	"activities_are_paused_and_unpaused": activitiesArePausedAndUnpaused,
	"activities_are_reset":               activitiesAreReset,
	"activities_get_other_options":       activitiesGetOtherOptions,
	"runs_get_other_options":             runsGetOtherOptions,
	"runs_are_paused_and_unpaused":       runsArePausedAndUnpaused,
}

func register(registry worker.WorkflowRegistry) {
	definitions := []any{
		Draw, Versioned, Local, Remote, FerryEntity, Tally, Child, Parent, Leaver, Third, Again, Register, Paint, Batch,
		Outside, Changing, Relayed, Echoed, Busy, Excess, Turnstile, Planned, Toiling,
	}
	for _, definition := range definitions {
		registry.RegisterWorkflow(definition)
	}
	registry.RegisterDynamicWorkflow(Anything, workflow.DynamicRegisterOptions{})
	// A replayer runs no activities.
	if served, ok := registry.(worker.ActivityRegistry); ok {
		served.RegisterActivity(SucceedAt)
		served.RegisterActivity(Leave)
		served.RegisterActivity(Echo)
		served.RegisterActivity(Stumble)
		served.RegisterActivity(Swell)
		served.RegisterActivity(Toil)
		served.RegisterDynamicActivity(DoAnything, activity.DynamicRegisterOptions{})
	}
}

// quiet says nothing: most cases make things fail on purpose.
var quiet = sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: go HOST:PORT [BEGINNING]")
		os.Exit(2)
	}
	beginning := ""
	if len(os.Args) == 3 {
		beginning = os.Args[2]
	}
	chosen := map[string]func(*world){}
	for _, part := range []map[string]func(*world){cases, visibility, schedules} {
		for name, function := range part {
			if strings.HasPrefix(name, beginning) {
				chosen[name] = function
			}
		}
	}
	c, err := client.Dial(client.Options{HostPort: os.Args[1], Logger: quiet})
	if err != nil {
		fmt.Printf("FAIL go.connect: %s\n0 passed, 1 failed\n", oneLine(err.Error()))
		os.Exit(1)
	}
	results := map[bool]int{}
	if strings.HasPrefix(first.name, beginning) {
		results[runCase(os.Args[1], c, first.name, first.function)]++
	}
	var mutex sync.Mutex
	var running sync.WaitGroup
	for name, function := range chosen {
		running.Go(func() {
			passed := runCase(os.Args[1], c, name, function)
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
