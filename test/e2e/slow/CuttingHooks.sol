// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {IPoolManager} from "@uniswap/v4-core/src/interfaces/IPoolManager.sol";
import {BalanceDelta} from "@uniswap/v4-core/src/types/BalanceDelta.sol";
import {PoolKey} from "@uniswap/v4-core/src/types/PoolKey.sol";
import {SwapParams} from "@uniswap/v4-core/src/types/PoolOperation.sol";

/// Hooks of Uniswap v4 pools that keep 1 % of what a swap leaves open: what it gives, or what it takes.
contract CuttingHooks {
    function afterSwap(address, PoolKey calldata key, SwapParams calldata swap, BalanceDelta delta, bytes calldata)
        external
        returns (bytes4, int128)
    {
        bool isSecond = (swap.amountSpecified < 0) == swap.zeroForOne;
        int128 amount = isSecond ? delta.amount1() : delta.amount0();
        int128 cut = (amount < 0 ? -amount : amount) / 100;
        IPoolManager(msg.sender).take(isSecond ? key.currency1 : key.currency0, address(this), uint128(cut));
        return (this.afterSwap.selector, cut);
    }
}
