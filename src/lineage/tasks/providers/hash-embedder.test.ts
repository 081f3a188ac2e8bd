/** The built-in embedder: the same on every machine, and near is what shares words and parts of them. */
import { expect, test } from "vitest";
import { hashEmbedding } from "./hash-embedder.ts";

const near = (one: string, other: string, dimension = 384) => {
  const [a, b] = [hashEmbedding(one, dimension), hashEmbedding(other, dimension)];
  return a.reduce((sum, x, index) => sum + x * (b[index] ?? 0), 0);
};

test("a vector has the dimension that was asked for, and length 1", () => {
  for (const dimension of [8, 384, 1_536]) {
    const vector = hashEmbedding("daily order revenue", dimension);
    expect(vector).toHaveLength(dimension);
    expect(vector.reduce((sum, x) => sum + x * x, 0)).toBeCloseTo(1, 10);
  }
  expect(hashEmbedding("... !!", 8)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
});

test("the recipe is fixed: what was computed yesterday can be compared with what is computed today", () => {
  expect(hashEmbedding("order_id", 8).map((x) => Number(x.toFixed(6)))).toMatchInlineSnapshot(`
    [
      0.127453,
      -0.509813,
      0.509813,
      -0.433341,
      -0.509813,
      0,
      -0.127453,
      0,
    ]
  `);
});

test("identifiers are read as people read them", () => {
  for (const other of ["OrderLineId", "order-line.ID", "order line id", "orderLineID"]) {
    expect(near("order_line_id", other)).toBeCloseTo(1, 10);
  }
  expect(near("t2024", "t 2024")).toBeCloseTo(1, 10);
  expect(near("Ｏｒｄｅｒ", "order")).toBeCloseTo(1, 10);
});

test.each([
  ["daily order revenue by customer", "customers orders revenue per day", "warehouse shelf temperature sensor"],
  ["dim_customer_orders", "DimCustomerOrder", "fact_shipment_lines"],
  ["客户每日订单收入", "按客户统计的每日订单收入", "仓库货架温度传感器"],
])("%s is nearer to %s than to %s", (text, related, unrelated) => {
  expect(near(text, related)).toBeGreaterThan(0.35);
  expect(near(text, unrelated)).toBeLessThan(0.2);
});

test("a word that is repeated counts for more, but not for as much as it is repeated", () => {
  const once = near("order", "order item");
  expect(near("order", "order order order item")).toBeGreaterThan(once);
  expect(near("item", "order ".repeat(50) + "item")).toBeGreaterThan(0.1);
});
