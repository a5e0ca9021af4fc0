#!/usr/bin/env node
import { adviceFor, type Command, type CommandFlags, EXIT_OK, EXIT_USAGE, UsageError } from './lib/flags.ts'

type CommandEntry = {
  readonly summary: string
  readonly run: Command
  readonly flags: () => Promise<CommandFlags>
  /** What may follow the command, where that is one of a few words. */
  readonly words?: () => Promise<readonly string[]>
}

/** Each entry loads its code when it runs: nothing may slow the start of the relay. The first runs without a command. */
const entries: Readonly<Record<string, CommandEntry>> = {
  serve: {
    summary: 'run the relay; also without a command',
    run: async (args) =>
      (await import('./relay/serve.ts')).serve(args, {
        startBuiltInChain: async (faults) => (await import('./devnet/built-in-chain.ts')).startBuiltInChain(faults),
        loadDocuments: async () => (await import('./docs/documents.ts')).documents,
      }),
    flags: async () => (await import('./relay/config/config.ts')).settingFlags,
  },
  tail: {
    summary: 'print the updates of some symbols',
    run: async (args) => (await import('./tools/tail/tail.ts')).tail(args),
    flags: async () => (await import('./tools/tail/tail-flags.ts')).tailFlags,
  },
  doctor: {
    summary: 'examine the upstreams of a relay',
    run: async (args) => (await import('./tools/doctor/doctor.ts')).doctor(args),
    flags: async () => (await import('./tools/doctor/doctor.ts')).doctorFlags,
  },
  conform: {
    summary: 'check a client against the rules of the contract',
    run: async (args) => (await import('./tools/conform/conform.ts')).conform(args),
    flags: async () => (await import('./tools/conform/conform.ts')).conformFlags,
  },
  completion: {
    summary: 'print a script that completes commands and flags in bash, zsh or fish',
    run: async (args) => (await import('./tools/completion.ts')).openCompletion(loadCompletedCommands)(args),
    flags: async () => (await import('./tools/completion.ts')).completionFlags,
    words: async () => (await import('./tools/completion.ts')).completionShells,
  },
  help: {
    summary: 'explain a command',
    run: ([name = '-']) => (name.startsWith('-') ? printHelp() : runCommand(name, ['--help'])),
    flags: async () => ({}),
    words: async () => Object.keys(entries),
  },
}
const commands = new Map(Object.entries(entries))

/** As in package.json. An older one lacks modules that the relay imports, and npm only warns about it. */
const OLDEST_NODE = [22, 18] as const

/** Without a command, or with a flag in its place, the relay runs. */
async function run(args: readonly string[]): Promise<number> {
  if (isNodeTooOld()) {
    process.stderr.write(`stocktape: Node ${OLDEST_NODE.join('.')} or later is needed, and this is ${process.versions.node}\n`)
    return EXIT_USAGE
  }
  const [first = ''] = args
  if (args.length === 1 && (first === '--help' || first === '-h')) return printHelp()
  if (args.length === 1 && first === '--version') return printVersion()
  return first === '' || first.startsWith('-') ? runCommand('serve', args) : runCommand(first, args.slice(1))
}

function isNodeTooOld(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])
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
  return `'${name.replace(/\s+/g, ' ')}' is not a command. ${adviceFor(name, commands.keys())}`
}

async function printHelp(): Promise<number> {
  const { settingsText } = await import('./relay/config/config.ts')
  const lines = [...commands].map(([name, { summary }]) => `  stocktape ${name.padEnd(11)} ${summary}`)
  const text = ['stocktape: the tape of tokenized stocks, over WebSocket and SSE', '', ...lines, '', commandsHint, '']
  process.stdout.write(`${text.join('\n')}\n${settingsText()}`)
  return EXIT_OK
}

const commandsHint = '`stocktape <command> --help` explains a command, and --version prints the version. What follows is for serve.'

const loadCompletedCommands = () =>
  Promise.all(
    [...commands].map(async ([name, { summary, flags, words }]) => ({
      name,
      summary,
      flags: await flags(),
      words: (await words?.()) ?? [],
    })),
  )

async function printVersion(): Promise<number> {
  const { version } = await import('./lib/version.ts')
  process.stdout.write(`${version}\n`)
  return EXIT_OK
}

process.exitCode = await run(process.argv.slice(2))
