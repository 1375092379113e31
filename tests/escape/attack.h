/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attack on a sandbox, tried for real. Each is one file here that defines one `struct attack`
 * by ATTACK(); linking it in is all that makes it known. The header of the file tells what the
 * attack is, where it was seen and which wall stops it.
 *
 * All of them make one static program, agentdock-probes, which plays two parts:
 *
 *	agentdock-probes list                           the attacks, as JSON
 *	agentdock-probes root DIR NAME                  on the host: makes the root file system for
 *	                                                the attack in DIR, an empty directory
 *	agentdock-probes workspace DIR NAME             the same for the workspace, if it wants one
 *	agentdock-probes around NAME -- LAUNCHER...     on the host: prepares what the attack needs
 *	                                                there, runs LAUNCHER with the words
 *	                                                /probe inside NAME [WORD...] appended, looks at
 *	                                                what became of it, prints the verdict as JSON
 *	agentdock-probes bundle BUNDLE ID RUNTIME WORKSPACE --
 *	                                                on the host: a LAUNCHER of what runs OCI
 *	                                                bundles, with what `runc spec` says
 *	/probe inside NAME [WORD...]                    in the sandbox: tries the attack
 *
 * LAUNCHER is a sandbox's command line up to the argv (`agentdock run --image X --`), of whatever
 * sandbox, so the same attacks judge others. The inside is hostile ground: `around` takes from it
 * one bounded line, and an attack that the host can see for itself is judged by the host.
 */
#ifndef TESTS_ESCAPE_ATTACK_H
#define TESTS_ESCAPE_ATTACK_H

#include <stdbool.h>
#include <stddef.h>

enum outcome {
	HELD,    /* the attack was tried and did not work */
	BROKEN,  /* it worked: the wall is down */
	ABSENT,  /* this kernel or this host lacks what it needs, so that nobody could try it */
	UNTRIED, /* an error: it was not tried, or ended in a way that tells nothing of the wall */
};

/* What an attack was seen to do, for people: one line, no newline. Later words replace earlier. */
struct evidence {
	char text[400];
};

/* Says what was seen and returns OUTCOME, so that `return verdict(ev, HELD, "...")` reads well. */
enum outcome verdict(struct evidence *evidence, enum outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct attack {
	const char *name; /* the file's name without .c */
	const char *what; /* one line: what the attacker wants */
	const char *seen; /* "CVE-2019-5736", or who describes it; never NULL */
	const char *wall; /* what stops it, in the words of docs/threat-model.md */
	/*
	 * Options of `agentdock run` that take the wall down, NULL-terminated: the control. The attack
	 * is BROKEN with them (--unsafe-without WALL, or a limit so large that it does not bite), or
	 * the test of the attack fails. NULL only with `no_control`: why no control can be had.
	 */
	const char *const *control;
	const char *no_control;
	/*
	 * Walls of `control` each of which stops the attack by itself, NULL-terminated: it is HELD
	 * where all others of the control are taken away, or the test of that wall fails. NULL: the
	 * control takes away one wall only, or the header tells why none of them stands alone.
	 */
	const char *const *alone;
	const char *const *options; /* more options of `agentdock run` that it needs; may be NULL */

	/*
	 * What the attack puts into the root file system, beside what root.c puts into each, and into
	 * the directory that becomes the workspace; by descriptor. Each returns 0, or -1 with errno.
	 * NULL: nothing of its own; without `workspace` the sandbox gets none.
	 */
	int (*root)(int rootfd);
	int (*workspace)(int workspacefd);

	/* Inside, as the command. ARGV are the WORDs of the host's half; ends with NULL. */
	enum outcome (*inside)(char *const argv[], struct evidence *evidence);

	/*
	 * The host's half, each may be NULL. `before` prepares and may append WORDs (static or heap,
	 * never freed) to WORDS, of which there is room for 8; descriptors that it leaves open without
	 * close-on-exec are inherited by the launcher, as a careless caller's would be. It returns 0,
	 * -1 where it could not prepare (UNTRIED), or 1 where the host lacks what the attack needs
	 * (ABSENT), both with the evidence set. `during` runs in a process of its own beside the
	 * launcher and is killed after it. `after` judges what the host can see: INSIDE is what the
	 * inside said (HELD, too, where it ended before it said anything), STATUS is the launcher's
	 * wait status; its outcome is the verdict, but see `silent`. What `before` leaves in static
	 * variables both find there.
	 */
	int (*before)(const char *words[8], struct evidence *evidence);
	void (*during)(void);
	enum outcome (*after)(enum outcome inside, int status, struct evidence *evidence);
	/*
	 * Where it is held the inside ends without a word, and `after` tells whether that was the
	 * expected end. Without it an inside that said nothing is no wall that held: it is UNTRIED,
	 * unless `after` saw that the attack worked, or a filter killed it for what it tried (SIGSYS).
	 */
	bool silent;
	/*
	 * An attack that a launcher rightly refuses to start: texts of which its first line on stderr
	 * has one then, NULL-terminated. That is HELD. NULL: who does not start is an error.
	 */
	const char *const *refusals;
};

#define ATTACK(identifier)                                                                         \
	static const struct attack identifier;                                                     \
	static const struct attack *const identifier##_entry                                       \
		__attribute__((used, section("attacks"))) = &identifier;                           \
	static const struct attack identifier

/* NULL-terminated lists of words in an initializer. */
#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
#define WITHOUT(wall) "--unsafe-without", wall

#endif
