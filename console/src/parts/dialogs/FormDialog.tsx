/** A short form in a dialog. What the server refuses is said in the form, and what was typed stays. */
import { type ReactNode, useId, useState } from "react";
import { ApiError } from "../../api/client.ts";
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
  /** What is known that fits; anything else may be typed. */
  suggestions?: readonly string[];
  maxLength?: number;
  /** Of the whole text, for the browser. */
  pattern?: string;
  /** Only with these values of the other fields. */
  isShown?(values: Readonly<Record<Name, string>>): boolean;
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
        {fields
          .filter(({ isShown }) => isShown?.(values) ?? true)
          .map((field) => {
            const { name, label, options, suggestions, placeholder, isOptional, maxLength, pattern } = field;
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
                  <input
                    {...shared}
                    required={!isOptional}
                    placeholder={placeholder}
                    maxLength={maxLength ?? 512}
                    pattern={pattern}
                    list={suggestions && `${shared.id}-known`}
                  />
                )}
                {suggestions && (
                  <datalist id={`${shared.id}-known`}>
                    {suggestions.map((one) => (
                      <option key={one} value={one} />
                    ))}
                  </datalist>
                )}
              </div>
            );
          })}
        {children}
        {form.error && refusalsOf(form.error).map((error) => <Failure key={error.message} error={error} />)}
        <Button type="submit" kind="primary" isDisabled={isDisabled ?? false} isPending={form.isPending}>
          {submit}
        </Button>
      </form>
    </Dialog>
  );
}

/** A request may be refused for several reasons, of which the error names the first. */
function refusalsOf(error: ApiError): readonly ApiError[] {
  const { others = [] } = error.details as { others?: readonly { error: string; code: string }[] };
  return [error, ...others.map((other) => new ApiError(error.status, other))];
}
