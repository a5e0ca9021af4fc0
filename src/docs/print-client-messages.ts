import '../protocol/history.ts'
import '../protocol/status.ts'
import { typescriptTypes } from './typescript-types.ts'

/** Prints `src/client/messages.ts`: the types of everything that the relay sends. */
process.stdout.write(typescriptTypes())
