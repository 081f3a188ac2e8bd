/** Tells public IP addresses from private and special-purpose ones. */
import { BlockList, isIPv4 } from "node:net";

/** From the registries of special-purpose addresses (RFC 6890 and its successors). */
const SPECIAL_V4 = subnets("ipv4", [
  "0.0.0.0/8", // this host
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier-grade NAT
  "127.0.0.0/8", // loopback
  "168.63.129.16/32", // Azure's virtual machine agent endpoint
  "169.254.0.0/16", // link-local, includes most cloud metadata services
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments, includes Oracle Cloud's metadata service
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, includes broadcast
]);

/** Global unicast. Excludes loopback, private, link-local, multicast, IPv4-mapped and NAT64 addresses. */
const GLOBAL_V6 = subnets("ipv6", ["2000::/3"]);
const SPECIAL_V6 = subnets("ipv6", [
  "2001::/23", // protocol assignments, includes Teredo, which embeds an IPv4 address
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4, which embeds an IPv4 address
  "3fff::/20", // documentation
]);

export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !SPECIAL_V4.check(address, "ipv4");
  return GLOBAL_V6.check(address, "ipv6") && !SPECIAL_V6.check(address, "ipv6");
}

function subnets(family: "ipv4" | "ipv6", blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [network = "", prefix] = block.split("/");
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}
