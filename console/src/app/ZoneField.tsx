/** The time zone: UTC, that of the browser, or any other, found by a part of its name. Loaded when the preferences are opened. */
import { useMemo } from "react";
import { Button, ComboBox, Input, Label, ListBox, ListBoxItem, Popover } from "react-aria-components";
import { Icon } from "../parts/controls/icons.tsx";
import { useWords } from "../words/words.ts";
import { usePreference, zone } from "./preferences.ts";
import { shell } from "./words.ts";
import styles from "./ZoneField.module.css";
import { zoneNames } from "./zones.ts";

export default function ZoneField() {
  const text = useWords(shell);
  const value = usePreference(zone);
  const zones = useMemo(
    () => zoneNames(zone.get()).map((id) => ({ id, name: id === "browser" ? text.browserZone : id })),
    [text],
  );
  return (
    <ComboBox
      className={styles.field}
      defaultItems={zones}
      defaultFilter={isMatch}
      selectedKey={value}
      onSelectionChange={(key) => key !== null && zone.set(String(key))}
    >
      <Label>{text.zone}</Label>
      <span className={styles.input}>
        <Input />
        <Button>
          <Icon name="chevron" />
        </Button>
      </span>
      <Popover className={styles.popover}>
        <ListBox className={styles.list}>
          {({ id, name }: { id: string; name: string }) => (
            <ListBoxItem id={id} textValue={name} className={styles.option}>
              {name}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </ComboBox>
  );
}

/** `new york` finds America/New_York. */
function isMatch(name: string, typed: string): boolean {
  return name.toLowerCase().replaceAll("_", " ").includes(typed.trim().toLowerCase().replaceAll("_", " "));
}
