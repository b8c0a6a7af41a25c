/** The board in the harbour office: one row a berth. */

import { useEffect, useState } from "react";

import { type Berth, countStates, fetchBerths, stateOf } from "./api";
import { every } from "./poll.js";

const REFRESH_SECONDS = 20;

interface RowProps {
  berth: Berth;
  hour: number;
}

export function BerthRow({ berth, hour }: RowProps) {
  const state = stateOf(berth, hour);
  return (
    <tr className={`berth berth-${state}`}>
      <th scope="row">{berth.number}</th>
      <td>{berth.boat ?? "free"}</td>
      <td>{berth.metres} m</td>
    </tr>
  );
}

export function Summary({ berths, hour }: { berths: Berth[]; hour: number }) {
  const counts = countStates(berths, hour);
  return (
    <p>
      {counts.free} free, {counts.taken} taken, {counts.overdue} overdue
    </p>
  );
}

export function Board({ base }: { base: string }) {
  const [berths, setBerths] = useState<Berth[]>([]);
  const hour = new Date().getHours();
  useEffect(() => every(REFRESH_SECONDS, async () => setBerths(await fetchBerths(base))), [base]);
  return (
    <section>
      <Summary berths={berths} hour={hour} />
      <table>
        <tbody>
          {berths.map((berth) => (
            <BerthRow key={berth.number} berth={berth} hour={hour} />
          ))}
        </tbody>
      </table>
    </section>
  );
}
