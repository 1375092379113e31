/* SPDX-License-Identifier: Apache-2.0 */
/* The system call of programs that have no libc, or do not have it yet. Returns what the kernel does:
 * a result, or -errno. syscall(2), "Architecture calling conventions". */
#ifndef INIT_SYSTEM_CALL_H
#define INIT_SYSTEM_CALL_H

#if defined(__x86_64__)

static inline long system_call(long number, long a, long b, long c, long d, long f, long g)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = f;
	register long r9 __asm__("r9") = g;
	long result;

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)

static inline long system_call(long number, long a, long b, long c, long d, long f, long g)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = f;
	register long x5 __asm__("x5") = g;

	__asm__ volatile("svc #0"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory");
	return x0;
}

#else
#error "the system calls of x86_64 and aarch64 are known"
#endif

#define CALL1(n, a)          system_call(n, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b)       system_call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c)    system_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) system_call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL5(n, a, b, c, d, e)                                                                    \
	system_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#endif
