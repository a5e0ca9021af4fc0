import { execFileSync, spawnSync } from 'node:child_process'

/** Servers have one core; the traffic and the listeners have the other. */
const CORES = { server: '0', world: '1' } as const
export type Core = keyof typeof CORES

/** Whether this machine has both cores, and the command that keeps a process on one. */
export const canPin = Object.values(CORES).every((core) => spawnSync('taskset', ['-c', core, 'true']).status === 0)

/** A command that runs on a core, where that is possible. */
export const pinnedCommand = (core: Core, command: readonly [string, ...string[]]): readonly [string, ...string[]] =>
  canPin ? ['taskset', '-c', CORES[core], ...command] : command

/** Keeps the threads of a running process on a core, where that is possible. */
export function pinToCore(pid: number, core: Core): void {
  if (canPin) execFileSync('taskset', ['-acp', CORES[core], String(pid)], { stdio: 'ignore' })
}
