#!/usr/bin/env node
import { type Command, EXIT_OK, EXIT_USAGE, UsageError } from './cli/command.ts'
import { nearestName } from './nearest-name.ts'

type CommandEntry = { readonly summary: string; readonly run: Command }

/** Each entry loads its code when it runs: nothing may slow the start of the relay. */
const commands: ReadonlyMap<string, CommandEntry> = new Map([
  ['serve', { summary: 'run the relay; also without a command', run: async (args) => (await import('./serve.ts')).serve(args) }],
  ['tail', { summary: 'print the updates of some symbols', run: async (args) => (await import('./cli/tail.ts')).tail(args) }],
] satisfies [string, CommandEntry][])

/** The nearest command is named up to this many edits. */
const SUGGESTION_BOUND_EDITS = 2

/** Without a command, or with a flag in its place, the relay runs. */
async function run(args: readonly string[]): Promise<number> {
  const [first = '', second] = args
  if (first === 'help') return second === undefined ? printHelp() : runCommand(second, ['--help'])
  if (args.length === 1 && (first === '--help' || first === '-h')) return printHelp()
  if (args.length === 1 && first === '--version') return printVersion()
  return first === '' || first.startsWith('-') ? runCommand('serve', args) : runCommand(first, args.slice(1))
}

async function runCommand(name: string, args: readonly string[]): Promise<number> {
  try {
    const command = commands.get(name)
    if (!command) throw new UsageError(unknownCommand(name))
    return await command.run(args)
  } catch (mistake) {
    if (!(mistake instanceof UsageError)) throw mistake
    process.stderr.write(`stocktape${commands.has(name) ? ` ${name}` : ''}: ${mistake.message}\n`)
    return EXIT_USAGE
  }
}

function unknownCommand(name: string): string {
  const nearest = nearestName(name, commands.keys(), SUGGESTION_BOUND_EDITS)
  return `'${name.replace(/\s+/g, ' ')}' is not a command.${nearest === undefined ? '' : ` Did you mean ${nearest}?`} Try --help.`
}

async function printHelp(): Promise<number> {
  const { settingsText } = await import('./config.ts')
  const lines = [...commands].map(([name, { summary }]) => `  stocktape ${name.padEnd(12)} ${summary}`)
  const text = ['stocktape: the tape of tokenized stocks, over WebSocket and SSE', '', ...lines, '', commandsHint, '']
  process.stdout.write(`${text.join('\n')}\n${settingsText()}`)
  return EXIT_OK
}

const commandsHint = '`stocktape <command> --help` explains a command, and --version prints the version. What follows is for serve.'

async function printVersion(): Promise<number> {
  const { version } = await import('./version.ts')
  process.stdout.write(`${version}\n`)
  return EXIT_OK
}

process.exitCode = await run(process.argv.slice(2))
