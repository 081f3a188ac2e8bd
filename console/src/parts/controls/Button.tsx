/** A button. One that the person may not use says why instead of doing nothing. */
import type { ReactNode } from "react";
import { Button as AriaButton, type PressEvent, Tooltip, TooltipTrigger } from "react-aria-components";
import styles from "./Button.module.css";
import { Icon, type IconName } from "./icons.tsx";

interface ButtonProps {
  children?: ReactNode;
  icon?: IconName;
  /** For a button without text. */
  label?: string;
  kind?: "plain" | "primary" | "danger" | "quiet";
  onPress?: (event: PressEvent) => void;
  isDisabled?: boolean;
  isPending?: boolean;
  /** Why it is disabled. */
  why?: string | undefined;
  type?: "button" | "submit";
  /** The id of the form that it submits from outside. */
  form?: string;
  autoFocus?: boolean;
  /** What it shows and hides. */
  expands?: { id: string; isOpen: boolean };
}

export function Button({
  children,
  icon,
  label,
  kind = "plain",
  why,
  isDisabled,
  isPending,
  type,
  expands,
  ...rest
}: ButtonProps) {
  const button = (
    <AriaButton
      {...rest}
      className={styles.button}
      data-kind={kind}
      // Focusable while disabled, so that the reason can be read.
      isDisabled={(isDisabled ?? false) && why === undefined}
      type={isPending ? "button" : (type ?? "button")}
      data-pending={isPending || undefined}
      // Not by `isPending` of React Aria, which announces a progress bar that the button would have to contain.
      {...((why !== undefined || isPending) && { "aria-disabled": true, onPress: () => {} })}
      {...(label !== undefined && { "aria-label": label })}
      {...(expands && { "aria-expanded": expands.isOpen, "aria-controls": expands.id })}
    >
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </AriaButton>
  );
  const tip = why ?? (children === undefined ? label : undefined);
  if (tip === undefined) return button;
  return (
    <TooltipTrigger delay={300}>
      {button}
      <Tooltip className={styles.tip} offset={4}>
        {tip}
      </Tooltip>
    </TooltipTrigger>
  );
}
