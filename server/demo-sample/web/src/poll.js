/** Calls a function now and then, and rests for longer after each failure. */

const LONGEST_REST_SECONDS = 300;

/**
 * Runs `task` every `seconds`; returns the function that stops it.
 */
export function every(seconds, task) {
  let stopped = false;
  let rest = seconds;

  async function turn() {
    if (stopped) {
      return;
    }
    try {
      await task();
      rest = seconds;
    } catch (error) {
      rest = longer(rest);
      console.warn(`next try in ${rest} s`, error);
    }
    setTimeout(turn, rest * 1000);
  }

  turn();
  return () => {
    stopped = true;
  };
}

export function longer(rest) {
  return Math.min(rest * 2, LONGEST_REST_SECONDS);
}
