/** One question to one plugin: its program is checked, run with its request, and its response decoded. */
import type { HostSemaphore } from '../../../src/async/semaphore.ts';
import { checkBinary, type BinaryPlace } from './binary.ts';
import { environmentObject, mergeEnvironment } from './environment.ts';
import { PluginError, type PluginErrorCode } from './plugin-error.ts';
import type { ProviderConfig } from '../config/provider-config.ts';
import type { Execute } from '../provider/provider.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse } from './response.ts';
import type { PluginMeter } from '../metrics.ts';
import { hostCommand, runPlugin, type RunLimits } from './run.ts';

export interface ExecuteOptions extends BinaryPlace {
  /** What all plugins have before their configured variables; asked before each run. */
  readonly environment: () => Promise<readonly string[]>;
  /** Keeps plugins from running too often at the same time. */
  readonly gate: HostSemaphore;
  readonly limits?: RunLimits | undefined;
  readonly meter?: PluginMeter | undefined;
  /** Kills what runs. */
  readonly stop: AbortSignal;
}

/** How the plugin of a provider is run. */
export function createExecute(config: ProviderConfig, options: ExecuteOptions): Execute {
  const { name, apiVersion, args, env } = config;
  return async (request, abandoned) => {
    const leave = await enter(options, name, abandoned);
    let started: number | undefined;
    let code: PluginErrorCode | undefined;
    try {
      // Checked each time: it may have been replaced since.
      const path = await checkBinary(name, options);
      const variables = await options.environment();
      started = performance.now();
      const stdout = await runPlugin(
        {
          plugin: name,
          command: hostCommand(options.hostRoot, path, args),
          env: environmentObject(mergeEnvironment(variables, env)),
          stdin: encodeRequest(apiVersion, request),
          ...(options.limits && { limits: options.limits }),
        },
        options.stop,
      );
      return decodeResponse(stdout.toString('utf8'), name, apiVersion);
    } catch (error) {
      code = error instanceof PluginError ? error.code : 'failed';
      throw error instanceof PluginError && error.code !== 'bad-response'
        ? new PluginError(
            error.code,
            name,
            `error execing credential provider plugin ${name} for image ${request.image}: ${error.message}`,
          )
        : error;
    } finally {
      options.meter?.ran(code, started === undefined ? undefined : performance.now() - started);
      leave();
    }
  };
}

/** Waits for a place, as long as anybody waits for the answer. */
async function enter(
  { gate, stop }: ExecuteOptions,
  name: string,
  abandoned: AbortSignal,
): Promise<() => void> {
  try {
    return await gate.enter(name, AbortSignal.any([stop, abandoned]));
  } catch {
    throw new PluginError('stopped', name, 'nobody waits for the answer any more');
  }
}
