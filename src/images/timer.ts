/** A timer as a value that is passed in, so that tests decide when time has passed. */

/** Runs `action` once after so many milliseconds. Gives back what ends the timer early. */
export type StartTimer = (ms: number, action: () => void) => () => void;

/** Real time. A timer alone does not keep the program running. */
export const systemTimer: StartTimer = (ms, action) => {
  const timer = setTimeout(action, ms);
  timer.unref();
  return () => {
    clearTimeout(timer);
  };
};
