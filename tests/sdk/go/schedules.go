package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

var (
	season = temporal.NewSearchAttributeKeyKeyword("GoSeason")
	year   = temporal.NewSearchAttributeKeyInt64("GoYear")
)

// The cases of schedules: by their names only.
var schedules = map[string]func(*world){
	"schedules_are_described_as_they_were_made": schedulesAreDescribedAsTheyWereMade,
	"schedules_are_updated_in_each_part":        schedulesAreUpdatedInEachPart,
	"schedules_are_paused_with_notes":           schedulesArePausedWithNotes,
	"schedules_are_listed":                      schedulesAreListed,
	"schedules_are_triggered_five_times":        schedulesAreTriggeredFiveTimes,
	"schedules_start_each_minute_of_a_backfill": schedulesStartEachMinuteOfABackfill,
	"schedules_backfill_while_they_are_paused":  schedulesBackfillWhileTheyArePaused,
	"schedules_act_when_their_time_comes":       schedulesActWhenTheirTimeComes,
	"schedules_keep_runs_from_overlapping":      schedulesKeepRunsFromOverlapping,
	"schedules_hand_on_what_their_runs_leave":   schedulesHandOnWhatTheirRunsLeave,
	"what_is_no_schedule_is_refused":            whatIsNoScheduleIsRefused,
}

// Planned answers how many runs before it have completed; it fails, or waits until it is told something.
func Planned(ctx workflow.Context, script string) (int, error) {
	count := 0
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &count); err != nil {
			return 0, err
		}
	}
	switch script {
	case "fail":
		return 0, temporal.NewNonRetryableApplicationError("out of paper", "Empty", nil)
	case "wait":
		put := func(channel workflow.ReceiveChannel, _ bool) { channel.Receive(ctx, nil) }
		cancelled := func(workflow.ReceiveChannel, bool) {}
		workflow.NewSelector(ctx).AddReceive(workflow.GetSignalChannel(ctx, "put"), put).AddReceive(ctx.Done(), cancelled).Select(ctx)
	}
	if workflow.GetLastError(ctx) != nil {
		return count + 100, ctx.Err()
	}
	return count + 1, ctx.Err()
}

// addAttributes registers the search attributes of the cases. A server may take a moment to know a name.
func (w *world) addAttributes() {
	types := map[string]enums.IndexedValueType{season.GetName(): season.GetValueType(), year.GetName(): year.GetValueType()}
	_, err := w.OperatorService().AddSearchAttributes(w, &operatorservice.AddSearchAttributesRequest{
		Namespace: client.DefaultNamespace, SearchAttributes: types,
	})
	w.must(err)
	options := client.ScheduleOptions{
		ID: w.id(), Action: w.action("count"),
		TypedSearchAttributes: temporal.NewSearchAttributes(season.ValueSet("any"), year.ValueSet(1)),
	}
	w.until(func() bool {
		handle, err := w.ScheduleClient().Create(w, options)
		var invalid *serviceerror.InvalidArgument
		if errors.As(err, &invalid) {
			return false
		}
		w.must(err)
		w.must(handle.Delete(w))
		return true
	})
}

// action is what the schedules of a case do.
func (w *world) action(script string) *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{ID: w.id(), Workflow: Planned, Args: []any{script}, TaskQueue: w.queue}
}

// schedule makes a schedule; the returned function remembers its runs and deletes it.
func (w *world) schedule(options client.ScheduleOptions) (handle client.ScheduleHandle, remove func()) {
	if options.ID == "" {
		options.ID = w.id()
	}
	handle, err := w.ScheduleClient().Create(w, options)
	w.must(err)
	w.equal(handle.GetID(), options.ID, "its id")
	return handle, func() {
		told, err := handle.Describe(w)
		if isNotFound(err) {
			return
		}
		w.must(err)
		for _, run := range ran(told) {
			w.remember(run.WorkflowID, run.FirstExecutionRunID)
		}
		w.must(handle.Delete(w))
	}
}

func (w *world) describe(handle client.ScheduleHandle) *client.ScheduleDescription {
	told, err := handle.Describe(w)
	w.must(err)
	return told
}

// trigger triggers an action. At a Temporal server the ids of two in one second would be the same.
func (w *world) trigger(handle client.ScheduleHandle, overlap enums.ScheduleOverlapPolicy) {
	if os.Getenv("LISTS_COME_LATE") != "" {
		first := time.Now().Unix()
		w.until(func() bool { return time.Now().Unix() > first })
	}
	w.must(handle.Trigger(w, client.ScheduleTriggerOptions{Overlap: overlap}))
}

// acted is the description once there were so many actions, and no more.
func (w *world) acted(handle client.ScheduleHandle, count int) *client.ScheduleDescription {
	w.until(func() bool { return w.describe(handle).Info.NumActions >= count })
	told := w.describe(handle)
	w.equal(told.Info.NumActions, count, "actions")
	return told
}

// idle is the description once no run is on, after so many actions.
func (w *world) idle(handle client.ScheduleHandle, count int) *client.ScheduleDescription {
	w.until(func() bool {
		told := w.describe(handle)
		return told.Info.NumActions >= count && len(told.Info.RunningWorkflows) == 0
	})
	return w.acted(handle, count)
}

// ran is the runs of the recent actions, the oldest first.
func ran(told *client.ScheduleDescription) []client.ScheduleWorkflowExecution {
	var runs []client.ScheduleWorkflowExecution
	for _, action := range told.Info.RecentActions {
		runs = append(runs, *action.StartWorkflowResult)
	}
	return runs
}

// wasUpdated: the SDK makes the beginning of all times of a time that is not there.
func wasUpdated(told *client.ScheduleDescription) bool { return told.Info.LastUpdateAt.Unix() > 0 }

func (w *world) resultOf(run client.ScheduleWorkflowExecution) int {
	result := 0
	w.must(w.GetWorkflow(w, run.WorkflowID, "").Get(w, &result))
	return result
}

func (w *world) statusOf(run client.ScheduleWorkflowExecution) enums.WorkflowExecutionStatus {
	described, err := w.DescribeWorkflowExecution(w, run.WorkflowID, "")
	w.must(err)
	return described.WorkflowExecutionInfo.Status
}

func all(first, last int) []client.ScheduleRange {
	return []client.ScheduleRange{{Start: first, End: last, Step: 1}}
}

func one(value int) []client.ScheduleRange { return all(value, value) }

func schedulesAreDescribedAsTheyWereMade(w *world) {
	w.addAttributes()
	defer w.serve(worker.Options{})()
	calendar := client.ScheduleCalendarSpec{
		Second: one(30), Minute: []client.ScheduleRange{{Start: 0, End: 59, Step: 15}}, Hour: all(9, 17),
		DayOfMonth: all(1, 15), Month: all(1, 6), Year: all(2030, 2040), DayOfWeek: all(1, 5), Comment: "in the office",
	}
	begin := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	action := w.action("count")
	action.WorkflowExecutionTimeout, action.WorkflowRunTimeout, action.WorkflowTaskTimeout = 3*time.Hour, 2*time.Hour, 7*time.Second
	action.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 3}
	action.Memo = map[string]any{"of": "the run"}
	action.TypedSearchAttributes = temporal.NewSearchAttributes(year.ValueSet(2031))
	action.StaticSummary, action.StaticDetails = "a summary", "details"
	action.Priority = temporal.Priority{PriorityKey: 2}
	handle, remove := w.schedule(client.ScheduleOptions{
		Spec: client.ScheduleSpec{
			Calendars:       []client.ScheduleCalendarSpec{calendar},
			Intervals:       []client.ScheduleIntervalSpec{{Every: time.Hour, Offset: 5 * time.Minute}},
			CronExpressions: []string{"0 12 * * MON"},
			Skip:            []client.ScheduleCalendarSpec{{Hour: one(12), Comment: "lunch"}},
			StartAt:         begin, EndAt: begin.AddDate(1, 0, 0), Jitter: 80 * time.Second, TimeZoneName: "Europe/Berlin",
		},
		Action: action, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchupWindow: 5 * time.Minute, PauseOnFailure: true,
		Note: "not yet", Paused: true, RemainingActions: 30, TriggerImmediately: true,
		Memo:                  map[string]any{"of": "the schedule"},
		TypedSearchAttributes: temporal.NewSearchAttributes(season.ValueSet("winter"), year.ValueSet(7)),
	})
	defer remove()
	told := w.describe(handle)
	w.equal(told.Info.NumActions, 1, "what is triggered with the start is described at once")
	spec := told.Schedule.Spec
	noon := client.ScheduleCalendarSpec{
		Second: one(0), Minute: one(0), Hour: one(12), DayOfMonth: all(1, 31), Month: all(1, 12), DayOfWeek: one(1),
		Year: []client.ScheduleRange{},
	}
	w.equal(spec.Calendars, []client.ScheduleCalendarSpec{calendar, noon}, "calendars, with what stood in a cron string")
	w.equal(len(spec.CronExpressions), 0, "no cron strings")
	w.equal(spec.Intervals, []client.ScheduleIntervalSpec{{Every: time.Hour, Offset: 5 * time.Minute}}, "intervals")
	w.equal([]any{spec.Skip[0].Hour, spec.Skip[0].Comment}, []any{one(12), "lunch"}, "what is left out")
	w.equal([]any{spec.StartAt, spec.EndAt, spec.Jitter, spec.TimeZoneName}, []any{begin, begin.AddDate(1, 0, 0), 80 * time.Second, "Europe/Berlin"}, "the rest of it")
	policy := client.SchedulePolicies{Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchupWindow: 5 * time.Minute, PauseOnFailure: true}
	w.equal(*told.Schedule.Policy, policy, "policies")
	state := client.ScheduleState{Note: "not yet", Paused: true, LimitedActions: true, RemainingActions: 30}
	w.equal(*told.Schedule.State, state, "its state")
	found := told.Schedule.Action.(*client.ScheduleWorkflowAction)
	w.equal([]any{found.ID, found.Workflow, found.TaskQueue}, []any{action.ID, "Planned", w.queue}, "what it starts")
	w.equal([]any{found.WorkflowExecutionTimeout, found.WorkflowRunTimeout, found.WorkflowTaskTimeout}, []any{3 * time.Hour, 2 * time.Hour, 7 * time.Second}, "timeouts")
	w.equal(found.RetryPolicy.MaximumAttempts, int32(3), "retries")
	w.equal([]any{found.StaticSummary, found.StaticDetails, found.Priority.PriorityKey}, []any{"a summary", "details", 2}, "what else it carries")
	carried, _ := found.TypedSearchAttributes.GetInt64(year)
	w.equal(carried, int64(2031), "search attributes of its runs")
	word, _ := told.TypedSearchAttributes.GetKeyword(season)
	w.equal(word, "winter", "search attributes")
	var memo string
	w.must(converter.GetDefaultDataConverter().FromPayload(told.Memo.Fields["of"], &memo))
	w.equal(memo, "the schedule", "the memo")
	w.equal(len(told.Info.NextActionTimes), 10, "times to come")
	w.that(!wasUpdated(told) && told.Info.CreatedAt.Unix() > 0, "when it was made", told.Info)
	run := ran(w.idle(handle, 1))[0]
	w.that(strings.HasPrefix(run.WorkflowID, action.ID+"-"), "the id of its run", run)
	w.equal(w.resultOf(run), 1, "its result")
	described, err := w.DescribeWorkflowExecution(w, run.WorkflowID, run.FirstExecutionRunID)
	w.must(err)
	fields := described.WorkflowExecutionInfo.SearchAttributes.IndexedFields
	by := ""
	w.must(converter.GetDefaultDataConverter().FromPayload(fields["TemporalScheduledById"], &by))
	w.equal(by, handle.GetID(), "who has started it")
	_, err = w.ScheduleClient().Create(w, client.ScheduleOptions{ID: handle.GetID(), Action: w.action("count")})
	w.that(errors.Is(err, temporal.ErrScheduleAlreadyRunning), "a second one", err)
}

func schedulesAreUpdatedInEachPart(w *world) {
	w.addAttributes()
	defer w.serve(worker.Options{})()
	handle, remove := w.schedule(client.ScheduleOptions{Action: w.action("wait"), Paused: true})
	defer remove()
	update := func(change func(*client.Schedule), attributes *temporal.SearchAttributes) *client.ScheduleDescription {
		w.must(handle.Update(w, client.ScheduleUpdateOptions{
			DoUpdate: func(given client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				schedule := given.Description.Schedule
				change(&schedule)
				return &client.ScheduleUpdate{Schedule: &schedule, TypedSearchAttributes: attributes}, nil
			},
		}))
		return w.describe(handle)
	}
	skip := func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		return nil, temporal.ErrSkipScheduleUpdate
	}
	w.must(handle.Update(w, client.ScheduleUpdateOptions{DoUpdate: skip}))
	w.that(!wasUpdated(w.describe(handle)), "an update that is skipped is none")
	failed := errors.New("changed my mind")
	fail := func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) { return nil, failed }
	w.that(errors.Is(handle.Update(w, client.ScheduleUpdateOptions{DoUpdate: fail}), failed), "one that fails")
	w.that(!wasUpdated(w.describe(handle)), "is none either")

	begin := time.Date(2031, 1, 1, 5, 0, 0, 0, time.UTC)
	told := update(func(schedule *client.Schedule) {
		schedule.Spec = &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}, StartAt: begin}
	}, nil)
	w.equal(told.Info.NextActionTimes[:2], []time.Time{begin, begin.Add(time.Hour)}, "new times")
	w.that(wasUpdated(told), "when it was updated")
	policy := client.SchedulePolicies{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: 20 * time.Second, PauseOnFailure: true}
	told = update(func(schedule *client.Schedule) { schedule.Policy = &policy }, nil)
	w.equal(*told.Schedule.Policy, policy, "new policies")
	state := client.ScheduleState{Note: "by and by", LimitedActions: true, RemainingActions: 3}
	told = update(func(schedule *client.Schedule) { schedule.State = &state }, nil)
	w.equal(*told.Schedule.State, state, "a new state")
	w.equal(*told.Schedule.Policy, policy, "what the update before has set")
	w.equal(len(told.Info.NextActionTimes), 3, "no more times than actions")
	update(func(schedule *client.Schedule) {
		schedule.Action.(*client.ScheduleWorkflowAction).Args = []any{"count"}
	}, nil)
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_SKIP)
	w.equal(w.resultOf(ran(w.acted(handle, 1))[0]), 1, "a run that does not wait")

	keep := func(*client.Schedule) {}
	attributes := func(word string) *temporal.SearchAttributes {
		set := temporal.NewSearchAttributes(season.ValueSet(word))
		return &set
	}
	none := temporal.NewSearchAttributes()
	for _, step := range []struct {
		given    *temporal.SearchAttributes
		expected string
	}{{attributes("spring"), "spring"}, {nil, "spring"}, {attributes("autumn"), "autumn"}, {&none, ""}, {nil, ""}} {
		update(keep, step.given)
		w.settles(func() any {
			word, _ := w.describe(handle).TypedSearchAttributes.GetKeyword(season)
			return word
		}, step.expected, "search attributes")
	}
}

func schedulesArePausedWithNotes(w *world) {
	defer w.serve(worker.Options{})()
	handle, remove := w.schedule(client.ScheduleOptions{Action: w.action("count")})
	defer remove()
	for _, step := range []struct {
		do     func() error
		paused bool
		note   string
	}{
		{func() error { return handle.Pause(w, client.SchedulePauseOptions{}) }, true, "Paused via Go SDK"},
		{func() error { return handle.Pause(w, client.SchedulePauseOptions{Note: "too loud"}) }, true, "too loud"},
		{func() error { return handle.Unpause(w, client.ScheduleUnpauseOptions{}) }, false, "Unpaused via Go SDK"},
		{func() error { return handle.Unpause(w, client.ScheduleUnpauseOptions{Note: "quiet"}) }, false, "quiet"},
		{func() error { return handle.Pause(w, client.SchedulePauseOptions{Note: "again"}) }, true, "again"},
	} {
		w.must(step.do())
		state := w.describe(handle).Schedule.State
		w.equal([]any{state.Paused, state.Note}, []any{step.paused, step.note}, "what is described at once")
	}
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
	w.equal(w.resultOf(ran(w.acted(handle, 1))[0]), 1, "a trigger of one that is paused")
}

func schedulesAreListed(w *world) {
	w.addAttributes()
	defer w.serve(worker.Options{})()
	tag := w.id()
	own := fmt.Sprintf("`GoSeason` = '%s'", tag)
	var ids []string
	for number := range 5 {
		handle, remove := w.schedule(client.ScheduleOptions{
			Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}},
			Action: w.action("count"), Paused: number%2 == 0, Note: fmt.Sprint("note ", number), TriggerImmediately: number == 3,
			TypedSearchAttributes: temporal.NewSearchAttributes(season.ValueSet(tag), year.ValueSet(int64(number))),
			Memo:                  map[string]any{"number": number},
		})
		defer remove()
		ids = append(ids, handle.GetID())
	}
	list := func(query string, size int) (found []*client.ScheduleListEntry) {
		iterator, err := w.ScheduleClient().List(w, client.ScheduleListOptions{PageSize: size, Query: query})
		w.must(err)
		for iterator.HasNext() {
			entry, err := iterator.Next()
			w.must(err)
			found = append(found, entry)
		}
		return found
	}
	lists := func(query string, size int, expected ...string) {
		w.settles(func() any {
			found := []string{}
			for _, entry := range list(query, size) {
				found = append(found, entry.ID)
			}
			return slices.Sorted(slices.Values(found))
		}, slices.Sorted(slices.Values(expected)), query)
	}
	for _, size := range []int{1, 2, 1000} {
		lists(own, size, ids...)
	}
	lists(own+" AND TemporalSchedulePaused = true", 1000, ids[0], ids[2], ids[4])
	lists(own+" AND GoYear > 2", 1000, ids[3], ids[4])
	lists(fmt.Sprintf("ScheduleId = '%s'", ids[1]), 1000, ids[1])
	w.must(w.ScheduleClient().GetHandle(w, ids[1]).Pause(w, client.SchedulePauseOptions{}))
	lists(own+" AND TemporalSchedulePaused = true", 1000, ids[0], ids[1], ids[2], ids[4])
	w.acted(w.ScheduleClient().GetHandle(w, ids[3]), 1)
	w.settles(func() any { return len(list(fmt.Sprintf("ScheduleId = '%s'", ids[3]), 1)[0].RecentActions) }, 1, "its action")
	entry := list(fmt.Sprintf("ScheduleId = '%s'", ids[3]), 1)[0]
	w.equal([]any{entry.Note, entry.Paused, entry.WorkflowType.Name}, []any{"note 3", false, "Planned"}, "what it is")
	w.equal(entry.Spec.Intervals, []client.ScheduleIntervalSpec{{Every: time.Hour}}, "its spec")
	w.that(len(entry.NextActionTimes) >= 5, "times to come", entry.NextActionTimes)
	number := 0
	w.must(converter.GetDefaultDataConverter().FromPayload(entry.Memo.Fields["number"], &number))
	w.equal(number, 3, "its memo")
	_, err := w.ScheduleClient().List(w, client.ScheduleListOptions{Query: "WorkflowType = 'x'"})
	if err == nil {
		iterator, _ := w.ScheduleClient().List(w, client.ScheduleListOptions{Query: "WorkflowType = 'x'"})
		_, err = iterator.Next()
	}
	var invalid *serviceerror.InvalidArgument
	w.that(errors.As(err, &invalid), "what schedules are not found by", err)
	w.idle(w.ScheduleClient().GetHandle(w, ids[3]), 1)
}

func schedulesAreTriggeredFiveTimes(w *world) {
	defer w.serve(worker.Options{})()
	handle, remove := w.schedule(client.ScheduleOptions{Action: w.action("count"), Paused: true})
	defer remove()
	for range 5 {
		w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL)
	}
	told := w.acted(handle, 5)
	w.equal(len(told.Info.RecentActions), 5, "recent ones")
	for _, run := range ran(told) {
		w.equal(w.resultOf(run), 1, "its result")
	}
}

func schedulesStartEachMinuteOfABackfill(w *world) {
	defer w.serve(worker.Options{})()
	// No bound is a time of the schedule.
	end := time.Now().Truncate(time.Minute).Add(-30 * time.Second)
	half := end.Add(-30 * time.Minute)
	overlap := enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
	handle, remove := w.schedule(client.ScheduleOptions{
		// It has no times to come.
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Minute}}, EndAt: end},
		Action: w.action("count"),
		ScheduleBackfill: []client.ScheduleBackfill{
			{Start: half.Add(-30 * time.Minute), End: half, Overlap: overlap}, {Start: half, End: end, Overlap: overlap},
		},
	})
	defer remove()
	told := w.acted(handle, 60)
	w.equal(len(told.Info.RecentActions), 10, "recent ones")
	w.equal([]any{len(told.Info.NextActionTimes), told.Info.NumActionsSkippedOverlap}, []any{0, 0}, "what is not started")
	for _, run := range ran(told) {
		w.equal(w.resultOf(run), 1, "its result")
	}
}

func schedulesBackfillWhileTheyArePaused(w *world) {
	defer w.serve(worker.Options{})()
	action := w.action("count")
	handle, remove := w.schedule(client.ScheduleOptions{
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Minute}}},
		Action: action, Paused: true, Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	defer remove()
	end := time.Now().Truncate(time.Minute).Add(-30 * time.Second)
	half := end.Add(-2 * time.Minute)
	overlap := enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
	w.must(handle.Backfill(w, client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{
		{Start: half.Add(-2 * time.Minute), End: half, Overlap: overlap}, {Start: half, End: end, Overlap: overlap},
	}}))
	told := w.acted(handle, 4)
	var ids, expected []string
	for _, run := range ran(told) {
		ids = append(ids, run.WorkflowID)
		w.equal(w.resultOf(run), 1, "its result")
	}
	for minutes := -4; minutes < 0; minutes++ {
		at := end.Truncate(time.Minute).Add(time.Duration(minutes+1) * time.Minute).UTC()
		expected = append(expected, action.ID+"-"+at.Format("2006-01-02T15:04:05Z"))
	}
	w.equal(ids, expected, "the oldest first, under their times")
	w.that(told.Schedule.State.Paused, "it is paused")
}

func schedulesActWhenTheirTimeComes(w *world) {
	defer w.serve(worker.Options{})()
	handle, remove := w.schedule(client.ScheduleOptions{
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}}},
		Action: w.action("count"), RemainingActions: 3, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	})
	defer remove()
	told := w.idle(handle, 3)
	w.equal(*told.Schedule.State, client.ScheduleState{LimitedActions: true}, "none remains")
	w.equal(len(told.Info.NextActionTimes), 0, "nor another time")
	for number, run := range ran(told) {
		w.equal(w.resultOf(run), number+1, "its result, after the last one's")
	}
}

func schedulesKeepRunsFromOverlapping(w *world) {
	defer w.serve(worker.Options{})()
	handle, remove := w.schedule(client.ScheduleOptions{Action: w.action("wait"), TriggerImmediately: true})
	defer remove()
	first := ran(w.acted(handle, 1))[0]
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
	w.until(func() bool { return w.describe(handle).Info.NumActionsSkippedOverlap == 1 })
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL)
	w.equal(w.describe(handle).Info.RunningWorkflows, []client.ScheduleWorkflowExecution{first}, "what is running")
	w.put(first.WorkflowID, 1)
	second := ran(w.acted(handle, 2))[1]
	w.equal(w.statusOf(first), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the first")
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER)
	third := ran(w.acted(handle, 3))[2]
	w.equal(w.statusOf(second), enums.WORKFLOW_EXECUTION_STATUS_CANCELED, "the second")
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER)
	fourth := ran(w.acted(handle, 4))[3]
	w.equal(w.statusOf(third), enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, "the third")
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL)
	fifth := ran(w.acted(handle, 5))[4]
	for _, run := range []client.ScheduleWorkflowExecution{fourth, fifth} {
		w.equal(w.statusOf(run), enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "one beside another")
		w.put(run.WorkflowID, 1)
	}
	w.equal([]int{w.resultOf(fourth), w.resultOf(fifth)}, []int{2, 1}, "what they were handed on")
}

func schedulesHandOnWhatTheirRunsLeave(w *world) {
	defer w.serve(worker.Options{})()
	handle, remove := w.schedule(client.ScheduleOptions{Action: w.action("count"), PauseOnFailure: true, TriggerImmediately: true})
	defer remove()
	w.idle(handle, 1)
	script := func(script string) {
		w.must(handle.Update(w, client.ScheduleUpdateOptions{
			DoUpdate: func(given client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				schedule := given.Description.Schedule
				schedule.Action.(*client.ScheduleWorkflowAction).Args = []any{script}
				return &client.ScheduleUpdate{Schedule: &schedule}, nil
			},
		}))
	}
	script("fail")
	w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
	w.until(func() bool { return w.describe(handle).Schedule.State.Paused })
	told := w.describe(handle)
	w.that(strings.HasPrefix(told.Schedule.State.Note, "paused due to workflow failure: "), "why", told.Schedule.State.Note)
	script("count")
	for number, expected := range []int{101, 102} {
		w.trigger(handle, enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
		runs := ran(w.idle(handle, number+3))
		w.equal(w.resultOf(runs[number+2]), expected, "with the last result, and the last failure until a run completes")
	}
}

func whatIsNoScheduleIsRefused(w *world) {
	defer w.serve(worker.Options{})()
	var invalid *serviceerror.InvalidArgument
	for _, cron := range []string{"0 0 * *", "0 25 * * *", "@every", "0 1/2/3 * * *"} {
		_, err := w.ScheduleClient().Create(w, client.ScheduleOptions{
			ID: w.id(), Spec: client.ScheduleSpec{CronExpressions: []string{cron}}, Action: w.action("count"),
		})
		w.that(errors.As(err, &invalid), cron, err)
	}
	handle, remove := w.schedule(client.ScheduleOptions{Action: w.action("count"), TriggerImmediately: true})
	defer remove()
	w.remember(ran(w.idle(handle, 1))[0].WorkflowID, ran(w.describe(handle))[0].FirstExecutionRunID)
	w.must(handle.Delete(w))
	now := time.Now()
	keep := func(given client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		return &client.ScheduleUpdate{Schedule: &given.Description.Schedule}, nil
	}
	_, err := handle.Describe(w)
	for name, err := range map[string]error{
		"describe": err,
		"delete":   handle.Delete(w),
		"pause":    handle.Pause(w, client.SchedulePauseOptions{}),
		"unpause":  handle.Unpause(w, client.ScheduleUnpauseOptions{}),
		"trigger":  handle.Trigger(w, client.ScheduleTriggerOptions{}),
		"update":   handle.Update(w, client.ScheduleUpdateOptions{DoUpdate: keep}),
		"backfill": handle.Backfill(w, client.ScheduleBackfillOptions{
			Backfill: []client.ScheduleBackfill{{Start: now.Add(-time.Hour), End: now}},
		}),
	} {
		w.that(isNotFound(err), name, err)
	}
}
