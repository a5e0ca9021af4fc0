export type { ScriptedRefusal } from './scripted-connection.ts'
export type { GivenFields, MessageOf, ScriptedFact } from './scripted-tape.ts'
export { TestRelay } from './test-relay.ts'
