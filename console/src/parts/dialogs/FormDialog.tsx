/** A short form in a dialog. What the server refuses is said in the form, and what was typed stays. */
import { type ReactNode, useId, useState } from "react";
import { useSubmit } from "../actions/use-submit.ts";
import { Button } from "../controls/Button.tsx";
import { Failure } from "../page/Page.tsx";
import { Dialog } from "./Dialog.tsx";
import styles from "./FormDialog.module.css";

export interface FormField<Name extends string> {
  name: Name;
  label: string;
  initial?: string;
  placeholder?: string;
  isOptional?: boolean;
  /** A choice instead of a text. */
  options?: readonly (readonly [value: string, text: string])[];
  maxLength?: number;
}

interface FormDialogProps<Name extends string> {
  title: string;
  fields: readonly FormField<Name>[];
  /** Below the fields. */
  children?: ReactNode;
  /** The text of the button. */
  submit: string;
  isDisabled?: boolean;
  onChange?(name: Name): void;
  onSubmit(values: Readonly<Record<Name, string>>): Promise<void>;
  onClose(): void;
}

export function FormDialog<Name extends string>(props: FormDialogProps<Name>) {
  const { title, fields, children, submit, isDisabled, onChange, onSubmit, onClose } = props;
  const id = useId();
  const [values, setValues] = useState(
    () => Object.fromEntries(fields.map(({ name, initial }) => [name, initial ?? ""])) as Record<Name, string>,
  );
  const form = useSubmit(() => onSubmit(values));
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <form className={styles.form} onSubmit={form.onSubmit}>
        {fields.map(({ name, label, options, placeholder, isOptional, maxLength }) => {
          const shared = {
            id: `${id}-${name}`,
            value: values[name],
            onChange: ({ target }: { target: { value: string } }) => {
              setValues({ ...values, [name]: target.value });
              onChange?.(name);
            },
          };
          return (
            <div key={name}>
              <label htmlFor={shared.id}>{label}</label>
              {options ? (
                <select {...shared}>
                  {options.map(([value, text]) => (
                    <option key={value} value={value}>
                      {text}
                    </option>
                  ))}
                </select>
              ) : (
                <input {...shared} required={!isOptional} placeholder={placeholder} maxLength={maxLength ?? 512} />
              )}
            </div>
          );
        })}
        {children}
        {form.error && <Failure error={form.error} />}
        <Button type="submit" kind="primary" isDisabled={isDisabled ?? false} isPending={form.isPending}>
          {submit}
        </Button>
      </form>
    </Dialog>
  );
}
