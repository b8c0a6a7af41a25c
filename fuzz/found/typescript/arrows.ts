import { a } from './b';
export class A<T> extends B implements C {
  private x = 1;
  @dec() f(y?: T): void {}
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = asy = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => }
}
export const g = async () => `x${a}`;
interface I { a: string }
