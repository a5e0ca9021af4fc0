import type { NamedPool } from '../config/pool-settings.ts'

const v3 = (token: NamedPool['token'], id: NamedPool['id']): NamedPool => ({
  token,
  currency: null,
  kind: 'uniswap_v3',
  id,
  manager: null,
})

/** Pools on Base against USDC, as read on 2026-09-05. The stocks trade elsewhere too: POOLS names other pools. */
export const basePools: readonly NamedPool[] = [
  // AAPLc, 0.3 %
  v3('0xb200000000000000000000c2e324d24d7eecd1fb', '0x97f35d1e92795327614be000cd18cba1be2c1931'),
  // GOOGLc, 1 %
  v3('0xb2000000000000000000002d0ba3164cc74f58b7', '0x1f52f46bac657564c31122b12b43a459e09273c8'),
  // METAc, 0.3 %
  v3('0xb2000000000000000000008bc8786b856e61707c', '0x583919ec1975a1238c50e1940911894ee6912476'),
  // NVDAc, 0.3 %
  v3('0xb20000000000000000000078ee7ce2fe4908108c', '0x60661b315553eb81872deea9a66d567cf0ccd33b'),
  // NVDAc, 0.05 %
  { ...v3('0xb20000000000000000000078ee7ce2fe4908108c', '0x853f5f1b92b16714fe6cda67caad0856b83c7ab9'), kind: 'slipstream' },
  // SPCXc, 1 %
  v3('0xb2000000000000000000007b9fcbd005511acbd5', '0x127a12fc0953ab2ab89558c67ba6d597d7140431'),
]

/** The contract that says whether the feed of a token is frozen. */
export const baseOracleRegistry = '0x3f3e8cf41cdd3b1d118c16471ab0113dfddd5cad'
