/** What the board knows of the engine. */

export type BerthState = "free" | "taken" | "overdue";

export interface Berth {
  number: number;
  metres: number;
  boat?: string;
  leavesAt?: number;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Fetches every berth, in the order of their numbers. */
export async function fetchBerths(base: string): Promise<Berth[]> {
  const response = await fetch(`${base}/berths`);
  if (!response.ok) {
    throw new ApiError(response.status, `the engine answered ${response.status}`);
  }
  const berths = (await response.json()) as Berth[];
  return berths.sort((a, b) => a.number - b.number);
}

/** What the board shows for a berth at an hour. */
export function stateOf(berth: Berth, hour: number): BerthState {
  if (berth.boat === undefined) {
    return "free";
  }
  return berth.leavesAt !== undefined && berth.leavesAt < hour ? "overdue" : "taken";
}

/** How many berths are in each state. */
export function countStates(berths: Berth[], hour: number): Record<BerthState, number> {
  const counts: Record<BerthState, number> = { free: 0, taken: 0, overdue: 0 };
  for (const berth of berths) {
    counts[stateOf(berth, hour)] += 1;
  }
  return counts;
}
