// Workflows that go on in other runs.
import { ApplicationFailure, condition, continueAsNew, defineSignal, setHandler, workflowInfo } from '@temporalio/workflow';

/** Fails until its third attempt. */
export async function third(): Promise<number> {
  const { attempt } = workflowInfo();
  if (attempt < 3) throw ApplicationFailure.create({ message: 'not yet', type: 'Early' });
  return attempt;
}

/** Counts its runs by the result of the last one. */
export async function again(): Promise<number> {
  return ((workflowInfo().lastResult as number | undefined) ?? 0) + 1;
}

export const layUp = defineSignal('lay up');
export const trip = defineSignal<[number]>('trip');

export interface Ferry {
  trips: number;
  passengers: number;
  runs: number;
}

/** Takes trips from signals, goes on in a new run after five of them, and carries its state. */
export async function ferry(carried: Ferry = { trips: 0, passengers: 0, runs: 0 }): Promise<Ferry> {
  const state = { ...carried, runs: carried.runs + 1 };
  let here = 0;
  let laidUp = false;
  setHandler(trip, (passengers) => {
    here += 1;
    state.trips += 1;
    state.passengers += passengers;
  });
  setHandler(layUp, () => void (laidUp = true));
  await condition(() => laidUp || here >= 5);
  if (!laidUp) await continueAsNew<typeof ferry>(state);
  return state;
}
