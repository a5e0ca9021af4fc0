import { adviceFor, type Command, commonFlags, EXIT_OK, readFlags, UsageError } from '../lib/flags.ts'
import { flagTerms, helpText } from '../lib/help.ts'
import { bashScript, type CompletedCommand, fishScript, zshScript } from './completion-scripts.ts'

const help = helpText(
  'stocktape completion bash|zsh|fish',
  'Prints a script that completes commands and flags. To load it in each new shell:',
  `  bash   echo 'eval "$(stocktape completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(stocktape completion zsh)"' >> ~/.zshrc    (after compinit)
  fish   stocktape completion fish > ~/.config/fish/completions/stocktape.fish`,
  flagTerms(commonFlags),
)

const scripts: ReadonlyMap<string, (commands: readonly CompletedCommand[]) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
])

export const completionShells: readonly string[] = [...scripts.keys()]
export const completionFlags = commonFlags

/** Prints the completion script of a shell for these commands, which load when they are needed. */
export const openCompletion =
  (loadCommands: () => Promise<readonly CompletedCommand[]>): Command =>
  async (args) => {
    const { positionals } = readFlags(completionFlags, args, { help, allowsWords: true })
    const [shell = '', ...others] = positionals
    const script = scripts.get(shell)
    if (!script || others.length > 0) throw new UsageError(mistakeOf(shell, others))
    process.stdout.write(script(await loadCommands()))
    return EXIT_OK
  }

function mistakeOf(shell: string, others: readonly string[]): string {
  if (shell === '') return `name a shell: ${completionShells.join(', ')}`
  if (scripts.has(shell)) return `one shell is enough, and '${others[0]}' is one more`
  return `'${shell}' is none of ${completionShells.join(', ')}. ${adviceFor(shell, completionShells)}`
}
