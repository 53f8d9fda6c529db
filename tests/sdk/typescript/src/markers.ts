// Local activities, patches, random numbers.
import { seenOf } from './activities';
import { draw, localCalls, versioned } from './workflows/markers';
import { count, type World } from './world';

export async function localActivitiesAreRetried(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(localCalls, { args: [] });
    w.equal(await run.result(), [1, 3, 2], 'the attempts that succeeded');
    const attempts = ['local 1', 'local 3', 'local 3', 'local 3', 'patient', 'patient'];
    w.equal(seenOf(run.workflowId), attempts, 'attempts in all');
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'activityTaskScheduledEventAttributes'), 0, 'ordinary activities');
    // One for each, and one that says that the last of them waits for a timer.
    w.equal(count(events, 'markerRecordedEventAttributes'), 4, 'markers');
    w.equal(count(events, 'timerFiredEventAttributes'), 3, 'timers, one of them for the back-off');
  });
}

export async function patchesStayWhatTheyWere(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(versioned, { args: [] });
    w.equal(await run.result(), [true, true], 'the path');
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'markerRecordedEventAttributes'), 1, 'markers');
    w.equal(count(events, 'upsertWorkflowSearchAttributesEventAttributes'), 1, 'upserts of the change version');
    const { searchAttributes } = await run.describe();
    w.equal(searchAttributes.TemporalChangeVersion, ['the path'], 'the change version');
  });
}

export async function randomNumbersAreTheSame(w: World): Promise<void> {
  // No cache: each task replays the whole history, and must draw what was drawn.
  const options = { maxCachedWorkflows: 0 };
  await w.serve(async () => {
    const run = await w.start(draw, { args: [] });
    const drawn = await run.result();
    w.equal(new Set(drawn).size, 8, 'every draw differs');
    w.equal(count(await w.events(run.workflowId), 'workflowTaskCompletedEventAttributes'), 5, 'tasks');
  }, options);
}
