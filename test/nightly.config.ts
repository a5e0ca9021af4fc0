import { mergeConfig } from 'vitest/config'
import proof from './proof.config.ts'

/** The long form of `npm run proof`: the same files with more clients, more rounds and more hours. */
export default mergeConfig(proof, { test: { env: { STOCKTAPE_NIGHTLY: '1' } } })
