/* SPDX-License-Identifier: Apache-2.0 */
/* oci/config.h: keys of a config.json that concern each other, the document as a whole, platforms. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oci/config.h"
#include "tests/unit/oci_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- keys that concern each other ---- */

static void test_process_rules(void **state)
{
	static const struct rule rules[] = {
		{"process.args", "['']", "[]", "process.args: must name a command"},
		{"process.args", "['a']", NULL, "process.args: must name a command"},
		{"process.rlimits[0].soft", "4096", "4097",
	         "process.rlimits[0].soft: must not be above \"hard\""},
		{"process.rlimits[1].type", "'RLIMIT_CPU'", "'RLIMIT_NOFILE'",
	         "process.rlimits[1].type: is limited by an entry before it already"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

static void test_mappings(void **state)
{
	static const char both[] = "[{'containerID': 0, 'hostID': 1000, 'size': 10}, "
				   "{'containerID': %d, 'hostID': %d, 'size': 5}]";
	static const struct rule rules[] = {
		{"linux.uidMappings[0].size", "1", "0",
	         "linux.uidMappings[0].size: must be at least 1"},
		{"mounts[1].gidMappings[0].size", "4294667296", "4294667297",
	         "mounts[1].gidMappings[0].size: 4294667297 ids from 300000 on do not fit"},
		{"mounts[1].gidMappings[0].containerID", "4294967276", "4294967277",
	         "mounts[1].gidMappings[0].size: 20 ids from 4294967277 on do not fit into 32"},
		{"mounts[1].gidMappings", "[{'containerID':0,'hostID':0,'size':1}]", NULL,
	         "mounts[1].gidMappings: is missing; a mount has both mappings or none"},
		{"mounts[1].uidMappings", "[{'containerID':0,'hostID':0,'size':1}]", "[]",
	         "mounts[1].uidMappings: is missing; a mount has both mappings or none"},
		{"mounts[1].uidMappings[1].containerID", "10", "9",
	         "mounts[1].uidMappings[1].containerID: its ids are those of entry 0 as well"},
	};
	char value[256];

	(void)state;
	keep(rules, COUNT(rules));
	snprintf(value, sizeof value, both, 10, 1010);
	takes("linux.gidMappings", value);
	snprintf(value, sizeof value, both, 10, 995);
	takes("linux.gidMappings", value);
	snprintf(value, sizeof value, both, 9, 2000);
	refuses("linux.gidMappings", value, "linux.gidMappings[1].containerID: its ids are those");
	snprintf(value, sizeof value, both, 9, 2000);
	refuses("linux.uidMappings", value, "linux.uidMappings[1].containerID: its ids are those");
	snprintf(value, sizeof value, both, 10, 996);
	refuses("linux.gidMappings", value, "linux.gidMappings[1].hostID: its ids are those of");
	snprintf(value, sizeof value, both, 10, 1009);
	refuses("linux.gidMappings", value, "linux.gidMappings[1].hostID: its ids are those of");
}

/* full.json with COUNT gid mappings of one id each */
static int parse_mappings(int count, struct err *e)
{
	scoped_json document = oci_full();
	struct json_object *list = json_object_new_array();
	scoped_config config = {0};

	for (int i = 0; i < count; i++) {
		struct json_object *entry = json_object_new_object();

		json_add_u64(entry, "containerID", (uint64_t)i);
		json_add_u64(entry, "hostID", (uint64_t)i);
		json_add_u64(entry, "size", 1);
		json_object_array_add(list, entry);
	}
	json_object_object_add(json_object_object_get(document, "linux"), "gidMappings", list);
	return parse_document(document, &config, e);
}

static void test_count_of_mappings(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(parse_mappings(340, &e), 0);
	assert_int_equal(parse_mappings(341, &e), -EINVAL);
	assert_string_equal(e.text,
	                    "config.json: linux.gidMappings: 341 entries, the kernel takes 340");
}

/* ---- namespaces ---- */

#define NAMESPACES(...) "[" __VA_ARGS__ "]"
#define UTS             "{'type': 'uts'}"
#define USER            "{'type': 'user'}"
#define TIME            "{'type': 'time'}"

static void test_namespaces(void **state)
{
	static const struct rule rules[] = {
		{"linux.namespaces[1].type", "'network'", "'pid'",
	         "linux.namespaces[1].type: is that of an entry before it already"},
		{"linux.namespaces", NAMESPACES(UTS "," USER "," TIME), NAMESPACES(USER "," TIME),
	         "hostname: needs an entry {\"type\": \"uts\"} in \"linux.namespaces\""},
		{"linux.namespaces", NAMESPACES(TIME "," UTS "," USER), NAMESPACES(TIME "," UTS),
	         "linux.uidMappings: needs an entry {\"type\": \"user\"}"},
		{"linux.namespaces", NAMESPACES(USER "," TIME "," UTS), NAMESPACES(USER "," UTS),
	         "linux.timeOffsets: needs an entry {\"type\": \"time\"}"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

/* full.json with these changes but the last key that needs the namespace, and without it */
static void needs_alone(const char *const gone[], const char *namespaces, const char *says)
{
	scoped_json document = oci_full();
	scoped_config config = {0};
	struct err e;

	for (size_t i = 0; gone[i]; i++)
		oci_change(document, gone[i], NULL);
	oci_change(document, "linux.namespaces", namespaces);
	assert_int_equal(parse_document(document, &config, &e), -EINVAL);
	if (strncmp(e.text, says, strlen(says)) != 0)
		fail_msg("\"%s\", not \"%s\"", e.text, says);
}

static void test_each_key_needs_its_namespace(void **state)
{
	(void)state;
	needs_alone((const char *const[]){"hostname", NULL}, NAMESPACES(USER "," TIME),
	            "config.json: domainname: needs an entry {\"type\": \"uts\"}");
	needs_alone((const char *const[]){"linux.uidMappings", NULL}, NAMESPACES(UTS "," TIME),
	            "config.json: linux.gidMappings: needs an entry {\"type\": \"user\"}");
	needs_alone((const char *const[]){"linux.timeOffsets.boottime", NULL},
	            NAMESPACES(UTS "," USER),
	            "config.json: linux.timeOffsets: needs an entry {\"type\": \"time\"}");
	needs_alone((const char *const[]){"linux.timeOffsets.monotonic", NULL},
	            NAMESPACES(UTS "," USER),
	            "config.json: linux.timeOffsets: needs an entry {\"type\": \"time\"}");
}

static int parse_idmap(const char *options, const char *namespaces, struct err *e)
{
	static const char *const gone[] = {"linux.uidMappings", "linux.gidMappings",
	                                   "mounts[1].uidMappings", "mounts[1].gidMappings"};
	scoped_json document = oci_full();
	scoped_config config = {0};

	for (size_t i = 0; i < COUNT(gone); i++)
		oci_change(document, gone[i], NULL);
	oci_change(document, "linux.namespaces", namespaces);
	oci_change(document, "mounts[1].options", options);
	return parse_document(document, &config, e);
}

static void test_idmapped_mounts(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(parse_idmap("['idmap']", NAMESPACES(UTS "," TIME "," USER), &e), 0);
	assert_int_equal(parse_idmap("['rbind']", NAMESPACES(UTS "," TIME), &e), 0);
	assert_int_equal(parse_idmap("['rbind', 'idmap']", NAMESPACES(UTS "," TIME), &e), -EINVAL);
	assert_string_equal(e.text,
	                    "config.json: mounts[1].options: idmap needs \"uidMappings\" and "
	                    "\"gidMappings\", or an entry {\"type\": \"user\"} in "
	                    "\"linux.namespaces\"");
	assert_int_equal(parse_idmap("['ridmap']", NAMESPACES(UTS "," TIME), &e), -EINVAL);
}

/* ---- devices, resources, seccomp ---- */

static void test_device_numbers(void **state)
{
	static const struct rule rules[] = {
		{"linux.devices[1].type", "'p'", "'u'",
	         "linux.devices[1].major: is missing; every device but one of type \"p\" has it"},
		{"linux.devices[0].minor", "1", NULL, "linux.devices[0].minor: is missing; every"},
		{"linux.devices[0].major", "1", NULL, "linux.devices[0].major: is missing; every"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

static void test_resource_rules(void **state)
{
	static const struct rule rules[] = {
		{"linux.resources.cpu.quota", "1000000", "999999",
	         "linux.resources.cpu.burst: must not be above \"quota\", as 1000000 is above "
	         "999999"},
		/* no positive quota, no bound */
		{"linux.resources.cpu.quota", "-1", "1", "linux.resources.cpu.burst: must not be"},
		{"linux.resources.cpu.quota", NULL, "1", "linux.resources.cpu.burst: must not be"},
		{"linux.resources.blockIO.weightDevice[1]",
	         "{'major': 1, 'minor': 2, 'leafWeight': 0}", "{'major': 1, 'minor': 2}",
	         "linux.resources.blockIO.weightDevice[1]: must have \"weight\", \"leafWeight\" "
	         "or"},
		{"linux.resources.rdma[\"rxe3\"]", "{'hcaHandles': 0}", "{}",
	         "linux.resources.rdma[\"rxe3\"]: must have \"hcaHandles\", \"hcaObjects\" or "
	         "both"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

#define CALL(action)       "{'names': ['a'], 'action': '" action "'}"
#define CALL_ERRNO(action) "{'names': ['a'], 'action': '" action "', 'errnoRet': 1}"

static void test_seccomp_rules(void **state)
{
	static const struct rule rules[] = {
		{"linux.seccomp.syscalls[0].names", "['']", "[]",
	         "linux.seccomp.syscalls[0].names: must have at least one entry"},
		{"linux.seccomp.listenerPath", "''", NULL,
	         "linux.seccomp.listenerMetadata: must not be there without \"listenerPath\""},
		{"linux.seccomp.defaultAction", "'SCMP_ACT_TRACE'", "'SCMP_ACT_ALLOW'",
	         "linux.seccomp.defaultErrnoRet: only the actions SCMP_ACT_ERRNO and "
	         "SCMP_ACT_TRACE"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

static void test_seccomp_actions(void **state)
{
#define ACTION(name)                                                                               \
	{                                                                                          \
		"linux.seccomp.syscalls[0]", CALL(name), CALL_ERRNO(name),                         \
			"linux.seccomp.syscalls[0].errnoRet: only the actions SCMP_ACT_ERRNO and"  \
	}
	static const struct rule rules[] = {
		ACTION("SCMP_ACT_KILL"),  ACTION("SCMP_ACT_KILL_PROCESS"),
		ACTION("SCMP_ACT_TRAP"),  ACTION("SCMP_ACT_KILL_THREAD"),
		ACTION("SCMP_ACT_ALLOW"), ACTION("SCMP_ACT_NOTIFY"),
		ACTION("SCMP_ACT_LOG"),
	};
	static const int meant[] = {OCI_ACT_KILL_THREAD, OCI_ACT_KILL_PROCESS, OCI_ACT_TRAP,
	                            OCI_ACT_KILL_THREAD, OCI_ACT_ALLOW,        OCI_ACT_NOTIFY,
	                            OCI_ACT_LOG};

	(void)state;
	keep(rules, COUNT(rules));
	for (size_t i = 0; i < COUNT(rules); i++) {
		scoped_config config = {0};
		struct err e;

		assert_int_equal(parse_changed(rules[i].path, rules[i].taken, &config, &e), 0);
		assert_int_equal(config.linux_part->seccomp->syscalls.items[0].action, meant[i]);
	}
}

/* ---- the document as a whole ---- */

static int parse_text(const char *text, struct oci_config *config, struct err *e)
{
	return oci_config_parse(text, strlen(text), config, e);
}

static void test_minimal(void **state)
{
	scoped_config config = {0};
	struct err e;

	(void)state;
	assert_int_equal(parse_text("{\"ociVersion\": \"1.0.0\", \"linux\": {\"resources\": {}}}",
	                            &config, &e),
	                 0);
	assert_null(config.root);
	assert_null(config.process);
	assert_null(config.hostname);
	assert_int_equal(config.mounts.count, 0);
	assert_null(config.linux_part->seccomp);
	assert_null(config.linux_part->resources->memory);
	assert_int_equal(config.linux_part->rootfs_propagation, 0);
	assert_null(oci_config_namespace(&config, CLONE_NEWPID));
}

static void test_unknown_keys_are_ignored(void **state)
{
	(void)state;
	takes("unknown", "{'a': [null]}");
	takes("process.unknown", "1e300");
	takes("linux.resources.oomScoreAdj", "100");
	takes("mounts[0].unknown", "null");
}

/* A list of COUNT texts as maskedPaths. */
static int parse_list(int count, struct err *e)
{
	scoped_json document = oci_full();
	struct json_object *list = json_object_new_array();
	scoped_config config = {0};

	for (int i = 0; i < count; i++)
		json_object_array_add(list, json_object_new_string("/"));
	json_object_object_add(json_object_object_get(document, "linux"), "maskedPaths", list);
	return parse_document(document, &config, e);
}

/* COUNT annotations. */
static int parse_map(int count, struct err *e)
{
	scoped_json document = oci_full();
	struct json_object *map = json_object_new_object();
	scoped_config config = {0};
	char key[16];

	for (int i = 0; i < count; i++) {
		snprintf(key, sizeof key, "%d", i);
		json_object_object_add(map, key, json_object_new_string(""));
	}
	json_object_object_add(document, "annotations", map);
	return parse_document(document, &config, e);
}

static void test_limits(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(parse_list(SHAPE_ENTRIES_MAX, &e), 0);
	assert_int_equal(parse_list(SHAPE_ENTRIES_MAX + 1, &e), -EINVAL);
	assert_string_equal(e.text, "config.json: linux.maskedPaths: 65537 entries, 65536 can be");
	assert_int_equal(parse_map(SHAPE_ENTRIES_MAX, &e), 0);
	assert_int_equal(parse_map(SHAPE_ENTRIES_MAX + 1, &e), -EINVAL);
	assert_string_equal(e.text, "config.json: annotations: 65537 entries, 65536 can be");
}

/* What base/json.h refuses is refused here, in whatever key. */
static void test_json_is_strict(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"\"1.0.0\"",
		"{\"ociVersion\": \"1.0.0\"} x",
		"{\"ociVersion\": \"1.0.0\", \"ociVersion\": \"1.0.0\"}",
		"{\"ociVersion\": \"1.0.0\", \"x\": NaN}",
		"{\"ociVersion\": \"1.0.0\", \"hostname\": \"a\\u0000b\"}",
		"{\"ociVersion\": \"1.0.0\", \"hostname\": \"\xff\"}",
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		scoped_config config = {0};

		if (parse_text(texts[i], &config, &e) == 0)
			fail_msg("%s is taken", texts[i]);
		if (strncmp(e.text, "config.json: ", 13) != 0)
			fail_msg("%s: %s", texts[i], e.text);
	}
}

/* A key that drives a terminal, or fills the message, is shown as text and cut. */
static void test_hostile_names(void **state)
{
	scoped_json document = oci_full();
	scoped_config config = {0};
	char name[3000];
	struct err e;

	(void)state;
	refuses("annotations", "{'\\u001b[2J': 1}", "annotations[\"\\x1b[2J\"]: must be a text");
	refuses("hostname", "['\\u001b[2J']", "hostname: must be a text, not an array");
	refuses("ociVersion", "'\\u001b[2J'", "ociVersion: \"\\x1b[2J\" is no version");
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	json_object_object_add(json_object_object_get(document, "linux"), "netDevices",
	                       json_object_new_object());
	json_object_object_add(oci_find(document, "linux.netDevices.x").holder, name,
	                       json_object_new_int(1));
	assert_int_equal(parse_document(document, &config, &e), -EINVAL);
	assert_non_null(strstr(e.text, "aaa\"]: must be an object, not 1"));
}

/* ---- platforms ---- */

static void test_other_platforms(void **state)
{
	static const struct rule rules[] = {
		{"freebsd", "{'jail': {'vnet': 'new', 'ip4': 'disable'}}",
	         "{'jail': {'host': 'disable'}}",
	         "freebsd.jail.host: \"disable\" is none of the values that can be (new, inherit)"},
		{"freebsd", "{'devices': [{'path': 'pf', 'mode': 511}]}",
	         "{'devices': [{'path': 'pf', 'mode': 512}]}",
	         "freebsd.devices[0].mode: must be a whole number from 0 to 511, not 512"},
		{"freebsd", "{'jail': {'enforceStatfs': 2, 'allow': {'mount': ['tmpfs']}}}",
	         "{'jail': {'allow': {'mlock': 1}}}",
	         "freebsd.jail.allow.mlock: must be true or false, not 1"},
		{"zos", "{'namespaces': [{'type': 'uts', 'path': 'a'}]}",
	         "{'namespaces': [{'type': 'network'}]}",
	         "zos.namespaces[0].type: \"network\" is none of the values that can be"},
		{"zos", "{'namespaces': [{'type': 'mount'}, {'type': 'pid'}, {'type': 'ipc'}]}",
	         "{'namespaces': [{}]}", "zos.namespaces[0].type: is missing, and must be there"},
		{"freebsd", "{'jail': {'ip4': 'new', 'ip6': 'inherit', 'sysvmsg': 'disable'}}",
	         "{'jail': {'ip6': 'none'}}", "freebsd.jail.ip6: \"none\" is none of the values"},
		{"windows", "{}", "[]", "windows: must be an object, not an array"},
		{"solaris", "{}", "1", "solaris: must be an object, not 1"},
		{"vm", "{}", "true", "vm: must be an object, not true"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

static void test_check_linux(void **state)
{
#define DOCUMENT(rest) "{\"ociVersion\": \"1.0.0\"" rest "}"
#define ROOT           ", \"root\": {\"path\": \"a\"}"
	static const struct {
		const char *text, *says;
	} tries[] = {
		{DOCUMENT(ROOT ", \"linux\": {}"), NULL},
		{DOCUMENT(ROOT ", \"linux\": {}, \"vm\": {}"), NULL},
		{DOCUMENT(ROOT), "config.json: linux: is missing; without namespaces of its own"},
		{DOCUMENT(", \"linux\": {}"), "config.json: root: is missing"},
		{DOCUMENT(ROOT ", \"freebsd\": {}"), "(it has \"freebsd\")"},
		{DOCUMENT(ROOT ", \"solaris\": {}"), "(it has \"solaris\")"},
		{DOCUMENT(ROOT ", \"vm\": {}"), "(it has \"vm\")"},
		{DOCUMENT(ROOT ", \"windows\": {}"), "(it has \"windows\")"},
		{DOCUMENT(ROOT ", \"zos\": {}"), "(it has \"zos\")"},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(tries); i++) {
		scoped_config config = {0};

		if (parse_text(tries[i].text, &config, &e) < 0)
			fail_msg("%s: %s", tries[i].text, e.text);
		assert_int_equal(oci_config_check_linux(&config, &e), tries[i].says ? -EINVAL : 0);
		if (tries[i].says && !strstr(e.text, tries[i].says))
			fail_msg("%s: %s", tries[i].text, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_rules),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_count_of_mappings),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_each_key_needs_its_namespace),
		cmocka_unit_test(test_idmapped_mounts),
		cmocka_unit_test(test_device_numbers),
		cmocka_unit_test(test_resource_rules),
		cmocka_unit_test(test_seccomp_rules),
		cmocka_unit_test(test_seccomp_actions),
		cmocka_unit_test(test_minimal),
		cmocka_unit_test(test_unknown_keys_are_ignored),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_json_is_strict),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_other_platforms),
		cmocka_unit_test(test_check_linux),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
