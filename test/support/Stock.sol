// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// The smallest token with the events of a tokenized stock: movements and issuer actions.
contract Stock {
    event Transfer(address indexed from, address indexed to, uint256 amount);
    event Approval(address indexed owner, address indexed spender, uint256 amount);

    event Memo(address indexed caller, bytes32 indexed memo);
    event Seized(address indexed caller, address indexed from, address indexed to, uint256 amount);
    event Paused(address indexed updater, uint8[] features);
    event MultiplierUpdated(uint256 multiplier);
    event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp);
    event Announcement(address indexed caller, string id, string description, string uri);
    event EndAnnouncement(string id);

    uint8 public constant decimals = 8;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    function mint(address to, uint256 amount) external {
        totalSupply += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function burn(uint256 amount) external {
        totalSupply -= amount;
        balanceOf[msg.sender] -= amount;
        emit Transfer(msg.sender, address(0), amount);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        emit Transfer(msg.sender, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    uint256 private current = 2e18;
    uint256 private next;
    uint256 public effectiveAt;
    uint8[] private paused;

    /// The multiplier at the block's time. A schedule that takes effect emits no event.
    function uiMultiplier() public view returns (uint256) {
        return next != 0 && block.timestamp >= effectiveAt ? next : current;
    }

    function newUIMultiplier() external view returns (uint256) {
        return next == 0 ? current : next;
    }

    function pausedFeatures() external view returns (uint8[] memory) {
        return paused;
    }

    /// Announces a change of the multiplier and makes it, at once or at a later time.
    function announce(string calldata id, uint256 to, uint256 at) external {
        emit Announcement(msg.sender, id, "A split", "");
        uint256 from = uiMultiplier();
        if (at <= block.timestamp) emit MultiplierUpdated(to);
        emit UIMultiplierUpdated(from, to, at <= block.timestamp ? block.timestamp : at);
        (current, next, effectiveAt) = (from, to, at);
        emit EndAnnouncement(id);
    }

    function pause(uint8[] calldata features) external {
        paused = features;
        emit Paused(msg.sender, features);
    }

    function seizeWithMemo(address from, address to, uint256 amount, bytes32 memo) external {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
        emit Memo(msg.sender, memo);
        emit Seized(msg.sender, from, to, amount);
    }
}
