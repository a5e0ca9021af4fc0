import { type Config, readConfig } from '../../../../src/relay/config/config.ts'

export type Env = Readonly<Record<string, string>>

/** The config of a start that has no mistakes. */
export function configOf(args: readonly string[], env: Env = {}): Config {
  const reading = readConfig(args, env)
  if (reading.kind !== 'settings') throw new Error(JSON.stringify(reading))
  return reading.config
}

export function mistakesOf(args: readonly string[], env: Env = {}): readonly string[] {
  const reading = readConfig(args, env)
  return reading.kind === 'mistakes' ? reading.lines : []
}
