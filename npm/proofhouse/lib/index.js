// Attacks on an agent in this process, for those who drive them themselves; test runners have modules of their own.
export { binary } from "./binary.js";
export { AttackFailed, Driver, DriverError, attack, select } from "./driver.js";
