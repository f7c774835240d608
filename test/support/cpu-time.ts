/** What work returns, and the milliseconds of processor time in this process: others may use the processors. */
export async function withUserMs<T>(work: () => T | Promise<T>): Promise<[T, number]> {
  const before = process.cpuUsage();
  const result = await work();
  return [result, process.cpuUsage(before).user / 1000];
}
