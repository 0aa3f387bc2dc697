#!/bin/sh
# Say what should stay the same on this node: lines of a name, a tab and a value, which is empty
# where the node does not show it. "name[]" is a list, with a line for each entry. It needs sh, awk,
# grep, ls, xargs and /proc and /sys, of which clustergate.machine.fingerprint hides what identifies.
#
#   sh node_state.sh [ROOT [FOLDER]]
#
# ROOT is the folder that holds proc and sys. Into FOLDER goes a file with the name of this node,
# and nothing where there is one: of several processes on a node one has to say it.
export LC_ALL=C
root=${1%/} folder=${2-}
cpu=$root/sys/devices/system/cpu

if [ -n "$folder" ]; then
  # What it says is for its user alone until what identifies is hidden.
  umask 077
  file=$folder/$(uname -n)
  (set -C && : >"$file") 2>/dev/null || { [ -e "$file" ]; exit; }
  half=$folder/.$(uname -n).$$
  exec >"$half"
fi

# Processes of a batch job have other limits than those of a login, by which launchers reach the
# job's other nodes: each is compared with its own kind alone.
of_login() {
  at=self pid=
  while read -r name <"$root/proc/$at/comm" && [ "$at" != 1 ]; do
    case $name in
    slurmstepd | pbs_mom) return 1 ;;
    sshd* | prted | orted) return ;;
    esac
    at=
    while read -r name value; do
      [ "$name" = PPid: ] && at=$value && break
    done <"$root/proc/${pid:-self}/status"
    pid=$at
    [ "${at:-0}" -gt 0 ] || return 1
  done 2>/dev/null
  return 1
}

files() {
  printf '%s\n' "$@"
}

what_to_read() {
  for name in cpuinfo meminfo cmdline self/limits self/status self/mounts net/route sys/kernel/arch \
    sys/kernel/osrelease sys/kernel/version sys/kernel/numa_balancing \
    sys/kernel/randomize_va_space sys/kernel/nmi_watchdog sys/vm/zone_reclaim_mode \
    sys/vm/swappiness sys/vm/overcommit_memory sys/net/ipv4/tcp_congestion_control \
    sys/net/ipv4/tcp_rmem sys/net/ipv4/tcp_wmem sys/net/core/rmem_max sys/net/core/wmem_max \
    sys/net/core/default_qdisc; do
    files "$root/proc/$name"
  done
  files "$root"/sys/devices/system/clocksource/clocksource0/current_clocksource \
    "$root"/sys/kernel/mm/transparent_hugepage/*enabled \
    "$root"/sys/kernel/mm/transparent_hugepage/defrag \
    "$root"/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages \
    "$root"/sys/devices/system/node/node[0-9]*/cpulist \
    "$root"/sys/class/dmi/id/sys_vendor "$root"/sys/class/dmi/id/product_name \
    "$root"/sys/class/dmi/id/board_name "$root"/sys/class/dmi/id/bios_* \
    "$root"/etc/tuned/active_profile "$root"/etc/os-release "$root"/usr/lib/os-release \
    "$root"/etc/ld.so.preload "$root"/sys/module/*/version
  files "$cpu"/online "$cpu"/offline "$cpu"/smt/control "$cpu"/cpuidle/current_* \
    "$cpu"/intel_pstate/no_turbo "$cpu"/cpufreq/boost "$cpu"/vulnerabilities/* \
    "$cpu"/cpu[0-9]*/topology/core_cpus_list "$cpu"/cpu[0-9]*/topology/thread_siblings_list \
    "$cpu"/cpu[0-9]*/topology/physical_package_id "$cpu"/cpu0/cpuidle/state*/name \
    "$cpu"/cpu[0-9]*/cpuidle/state*/disable "$cpu"/cpu[0-9]*/cache/index*/[lt][ey]* \
    "$cpu"/cpu[0-9]*/cache/index*/s[ih][za]*[et] "$cpu"/cpufreq/policy*/related_cpus \
    "$cpu"/cpufreq/policy*/scaling_driver "$cpu"/cpufreq/policy*/scaling_governor \
    "$cpu"/cpufreq/policy*/energy_performance_preference \
    "$cpu"/cpufreq/policy*/scaling_m[ai][xn]_freq "$cpu"/cpufreq/policy*/cpuinfo_max_freq
  for device in "$root"/sys/class/net/* "$root"/sys/class/infiniband/*; do
    files "$device"/operstate "$device"/speed "$device"/mtu "$device"/fw_ver "$device"/hca_type \
      "$device"/board_id "$device"/device/current_link_*
  done
  for port in "$root"/sys/class/infiniband/*/ports/*; do
    files "$port"/state "$port"/phys_state "$port"/rate "$port"/link_layer "$port"/gid_attrs/types/*
  done
  # Limits of cgroups hold on every level.
  awk -v root="$root" '
    # Version 2 names no controllers.
    function controllers(text, n) {
      if (!(n = split(text, names, ","))) names[n = 1] = ""
      return n
    }
    FILENAME ~ /mountinfo$/ {
      split(substr($0, index($0, " - ") + 3), behind, " ")
      kinds = behind[1] == "cgroup2" ? "" : behind[3]
      if (behind[1] ~ /^cgroup2?$/)
        for (i = controllers(kinds); i; i--) { top[names[i]] = $4; mount[names[i]] = $5 }
      next
    }
    {
      at = index($0, ":"); rest = substr($0, at + 1); at = index(rest, ":")
      path = substr(rest, at + 1)
      for (i = controllers(substr(rest, 1, at - 1)); i; i--) {
        if (!(names[i] in mount) || path ~ /\.\./) continue
        if (top[names[i]] != "/" && index(path "/", top[names[i]] "/") == 1)
          path = substr(path, length(top[names[i]]) + 1)
        level = path == "/" ? "" : path
        for (;;) {
          base = root mount[names[i]] level "/"
          if (names[i] == "") print base "cpu.max\n" base "memory.max\n" base "memory.high"
          if (names[i] == "cpu") print base "cpu.cfs_quota_us\n" base "cpu.cfs_period_us"
          if (names[i] == "memory") print base "memory.limit_in_bytes"
          if (level == "") break
          sub(/\/[^\/]*$/, "", level)
        }
      }
    }' "$root/proc/self/mountinfo" "$root/proc/self/cgroup" 2>/dev/null
}

# Where links lead: to drivers, and to the libraries that carry messages.
links() {
  ls -ld "$root"/sys/class/net/*/device "$root"/sys/class/net/*/device/driver \
    "$root"/sys/class/infiniband/*/device/driver 2>/dev/null
  for folder in "$root"/usr/lib64 "$root"/usr/lib/*-linux-gnu; do
    ls -l "$folder"/libc.so.6 "$folder"/libibverbs.so.1 "$folder"/librdmacm.so.1 \
      "$folder"/libmlx5.so.1 "$folder"/libucp.so.0 "$folder"/libfabric.so.1 "$folder"/libpsm2.so.2 \
      "$folder"/libpmix.so.2 "$folder"/libhcoll.so.1 "$folder"/libmpi.so.[0-9]* 2>/dev/null
  done
}

{
  links
  what_to_read | xargs grep -s '' /dev/null
} | awk -v root="$root" -v of_login="$(of_login && echo login_)" -v machine="$(uname -m)" -v libc="$(getconf GNU_LIBC_VERSION 2>/dev/null)" '
  function say(name, value) { gsub(/\t/, " ", value); print name "\t" value }
  # The line of a file that has one, and nothing of any other.
  function word(path) { return lines[path] == 1 ? first[path] : "" }
  function chosen(path, text) {
    text = word(path)
    return match(text, /\[[^]]+\]/) ? substr(text, RSTART + 1, RLENGTH - 2) : ""
  }
  # What stands in the path behind some words, up to the next slash.
  function between(words, rest) {
    rest = path
    while (index(rest, words)) rest = substr(rest, index(rest, words) + length(words))
    sub(/\/.*/, "", rest)
    return rest
  }
  function integer(path, text) { text = word(path); return text ~ /^-?[0-9]+$/ ? text : "" }
  function list(name, count, items, i) {
    say(name "[]", "")
    for (i = 1; i <= count; i++) say(name "[]", items[i])
  }
  function some(name, count, items) { if (count) list(name, count, items); else say(name, "") }
  # Mark the numbers of a kernel list such as 0-3,8 and return how many they are.
  function numbers_of(text, into, i, n, ends, parts, count) {
    count = 0
    for (n = split(text, parts, /[, ]+/); n; n--) {
      if (parts[n] !~ /^[0-9]+(-[0-9]+)?$/) continue
      if (split(parts[n], ends, "-") < 2) ends[2] = ends[1]
      # No machine has so many, and a damaged file must not keep us.
      if (length(ends[2]) > 6) continue
      for (i = ends[1] + 0; i <= ends[2] + 0; i++) {
        into[i] = 1
        count++
        if (i > highest) highest = i
      }
    }
    return count
  }
  # The CPUs that have this value of a property, as the kernel lists numbers.
  function cpus_with(key, i, begin, text) {
    begin = -1
    for (i = 0; i <= highest + 1; i++) {
      if ((key, i) in has) { if (begin < 0) begin = i; continue }
      if (begin >= 0) text = text "," begin (i - 1 > begin ? "-" (i - 1) : "")
      begin = -1
    }
    return substr(text, 2)
  }
  function note(name, value, number) {
    if (value == "" || number !~ /^[0-9]+$/ || length(number) > 6) return
    number += 0
    if (number > highest) highest = number
    if (!((name, value) in known)) { known[name, value] = 1; value_of[name, ++count_of[name]] = value }
    has[name SUBSEP value, number] = 1
  }
  # The value that all CPUs share, else each with the CPUs that have it.
  function by_cpu(name, i, text) {
    if (count_of[name] == 1) return value_of[name, 1]
    for (i = 1; i <= count_of[name]; i++)
      text = text (i > 1 ? ", " : "") value_of[name, i] " (" \
        cpus_with(name SUBSEP value_of[name, i]) ")"
    return text
  }
  function device(name, path, driver) {
    driver = target[path "/device/driver"]
    say(name ".driver", driver)
    say(name ".driver_version", driver == "" ? "" : word("sys/module/" driver "/version"))
    driver = word(path "/device/current_link_speed")
    path = word(path "/device/current_link_width")
    say(name ".pci_link", driver != "" && path != "" ? driver " x" path : "")
  }
  BEGIN { length_of_root = length(root) + 1; highest = -1 }
  /^[ld][-rwxst.+@]+ / {
    at = index($0, root "/sys/"); if (!at) at = index($0, root "/usr/")
    path = substr($0, at + length_of_root)
    here = path
    sub(/ -> .*/, "", here)
    is_there[here] = 1
    if (path == here) next
    sub(/.*\//, "", path)
    target[here] = path
    if (here ~ /^usr\//) { sub(/.*\//, "", here); library[++libraries] = here " " path }
    next
  }
  {
    line = substr($0, length_of_root + 1)
    at = index(line, ":")
    path = substr(line, 1, at - 1)
    line = substr(line, at + 1)
    if (!lines[path]++) { first[path] = line; order[++paths] = path }
  }
  path == "proc/cpuinfo" {
    at = index(line, ":")
    key = substr(line, 1, at - 1); sub(/[ \t]+$/, "", key)
    value = substr(line, at + 1); sub(/^[ \t]+/, "", value)
    if (key == "processor") entry = value
    if (key == "microcode") note("microcode", value, entry)
    if (!(key in cpuinfo)) cpuinfo[key] = value
  }
  path == "proc/meminfo" && line ~ /^MemTotal: *[0-9]+ kB$/ { split(line, part, " "); total_kb = part[2] }
  path == "proc/self/status" && line ~ /^Cpus_allowed_list:/ {
    affinity = line; sub(/^[^:]*:[ \t]*/, "", affinity)
  }
  path == "proc/self/limits" && match(line, /  +(unlimited|[0-9]+) /) {
    soft = substr(line, RSTART, RLENGTH); gsub(/ /, "", soft)
    limit[substr(line, 5, RSTART - 5)] = soft
  }
  path == "proc/net/route" && lines[path] > 1 { split(line, part, /[ \t]/); routed[part[1]] = 1 }
  path == "proc/self/mounts" { mounted[++mounts] = line }
  path ~ /os-release$/ && line ~ /^PRETTY_NAME=/ && system_name == "" {
    system_name = line; sub(/^PRETTY_NAME=/, "", system_name); gsub(/^["'\'']|["'\'']$/, "", system_name)
  }
  path == "etc/ld.so.preload" {
    sub(/#.*/, "", line)
    n = split(line, part, /[ \t:]+/)
    for (i = 1; i <= n; i++)
      if (part[i] != "") preloaded[++preloads] = part[i]
  }
  path ~ /system\/node\/node[0-9]+\/cpulist$/ { numa[++numas] = between("node/node") ": " line }
  # Each kernel knows some more that the processor does not have: no change of the machine.
  path ~ /cpu\/vulnerabilities\// {
    protected = 1
    if (line != "Not affected") mitigation[++mitigations] = between("vulnerabilities/") ": " line
  }
  path ~ /nr_hugepages$/ && line ~ /^[0-9]+$/ { page[++pages] = line " of " between("hugepages-") }
  path ~ /^sys\/module\/(mlx|ib|rdma|hfi|qib|bnxt|irdma|efa|nvidia|amdgpu|xpmem|knem|gdrdrv)/ ||
  path ~ /^sys\/module\/(lustre|lnet|mmfs|beegfs|ice|i40e|ixgbe)/ {
    module[++modules] = between("module/") " " line
  }
  END {
    cpu = "sys/devices/system/cpu/"
    online = numbers_of(word(cpu "online"), is_online)
    offline = numbers_of(word(cpu "offline"), is_offline)
    for (i = 1; i <= paths; i++) {
      path = order[i]
      if (index(path, cpu "cpu") != 1 && index(path, cpu "cpufreq/policy") != 1) continue
      number = substr(path, length(cpu) + 1); sub(/^(cpufreq\/policy|cpu)/, "", number); number += 0
      if (path ~ /(core_cpus|thread_siblings)_list$/ && number in is_online) {
        if (!(number in siblings)) siblings[number] = word(path)
      } else if (path ~ /physical_package_id$/ && number in is_online) {
        if (integer(path) >= 0) socket[integer(path)] = 1
      } else if (path ~ /shared_cpu_list$/ && number in is_online) {
        base = path; sub(/shared_cpu_list$/, "", base)
        size = word(base "size")
        if (size !~ /^[0-9]+K$/ || integer(base "level") == "") continue
        key = "L" word(base "level") " " word(base "type") " %d x " (size + 0) " KiB"
        if (!((key, word(path)) in shared)) {
          shared[key, word(path)] = 1
          if (!instances[key]++) cache[++caches] = key
        }
      } else if (path ~ /cpuidle\/state[0-9]+\/name$/) {
        sub(/.*cpuidle\//, "", path); sub(/\/name$/, "", path)
        state[++states] = path; state_name[path] = word(order[i])
      } else if (path ~ /cpuidle\/state[0-9]+\/disable$/) {
        sub(/.*cpuidle\//, "", path); sub(/\/disable$/, "", path)
        if (integer(order[i]) + 0) note(path, "disabled", number)
      } else if (path ~ /cpufreq\/policy[0-9]+\/[^r]/) {
        base = path; sub(/[^\/]*$/, "", base)
        name = substr(path, length(base) + 1)
        value = name ~ /_freq$/ ? integer(path) : word(path)
        if (name ~ /_freq$/ && value != "") value = sprintf("%g", value / 1000)
        members = word(base "related_cpus"); if (members == "") members = number
        for (n = split(members, part, " "); n; n--) note(name, value, part[n])
      }
    }
    for (number in siblings) {
      if (siblings[number] == "") { unknown = 1; continue }
      if (!(siblings[number] in core)) { core[siblings[number]] = 1; cores++ }
      split("", part)
      threads = numbers_of(siblings[number], part)
      if (threads > most_threads) most_threads = threads
    }
    for (number in socket) sockets++
    split("sse2 sse4_2 avx avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl avx512_vnni " \
      "avx512_bf16 avx512_fp16 amx_tile amx_bf16 amx_int8 asimd sve sve2 sme", wanted, " ")
    flags = " " cpuinfo["flags"] " " cpuinfo["Features"] " "
    for (i = 1; i in wanted; i++)
      if (index(flags, " " wanted[i] " ")) vector[++vectors] = wanted[i]
    architecture = word("proc/sys/kernel/arch")
    processor = cpuinfo["model name"] cpuinfo["Model Name"]
    say("hardware.architecture", architecture == "" ? machine : architecture)
    say("hardware.processor", processor == "" ? cpuinfo["cpu"] : processor)
    # Virtual machines call processors of several generations by one name.
    say("hardware.processor_model", "cpu family" in cpuinfo ? "family " cpuinfo["cpu family"] \
      ", model " cpuinfo["model"] ", stepping " cpuinfo["stepping"] : "CPU part" in cpuinfo ? \
      "implementer " cpuinfo["CPU implementer"] ", part " cpuinfo["CPU part"] : "")
    say("hardware.virtual_machine", !index(flags, " fpu ") ? "" : \
      index(flags, " hypervisor ") ? "true" : "false")
    say("hardware.sockets", sockets)
    say("hardware.cores", unknown ? "" : cores)
    say("hardware.threads_per_core", most_threads)
    say("hardware.cpus_online", online ? online : "")
    say("hardware.cpus_offline", online ? offline : "")
    some("hardware.vector_instructions", vectors, vector)
    for (i = 1; i <= caches; i++) sub(/%d/, instances[cache[i]], cache[i])
    some("hardware.caches", caches, cache)
    say("hardware.microcode", by_cpu("microcode"))
    # The memory of each NUMA node is left out: virtual machines bring it online bit by bit.
    say("hardware.memory_total_gib", total_kb == "" ? "" : sprintf("%.2f", total_kb / 1048576))
    say("hardware.numa_nodes", numas)
    some("hardware.numa_cpus", numas, numa)
    # Only these: the serial numbers and UUIDs of the folder identify a machine.
    split("system_vendor sys_vendor system_product product_name board board_name bios_vendor " \
      "bios_vendor bios_version bios_version bios_date bios_date", part, " ")
    for (i = 1; i in part; i += 2) say("hardware." part[i], word("sys/class/dmi/id/" part[i + 1]))

    say("kernel.release", word("proc/sys/kernel/osrelease"))
    # Not /proc/version: that names who compiled the kernel, and on which host.
    say("kernel.version", word("proc/sys/kernel/version"))
    say("kernel.command_line", word("proc/cmdline"))
    if (protected) list("kernel.mitigations", mitigations, mitigation)
    else say("kernel.mitigations", "")
    huge = "sys/kernel/mm/transparent_hugepage/"
    say("kernel.transparent_huge_pages", chosen(huge "enabled"))
    say("kernel.transparent_huge_pages_defrag", chosen(huge "defrag"))
    say("kernel.transparent_huge_pages_shmem", chosen(huge "shmem_enabled"))
    split("clocksource sys/devices/system/clocksource/clocksource0/current_clocksource " \
      "smt " cpu "smt/control idle_driver " cpu "cpuidle/current_driver " \
      "idle_governor " cpu "cpuidle/current_governor_ro " \
      "numa_balancing proc/sys/kernel/numa_balancing " \
      "zone_reclaim_mode proc/sys/vm/zone_reclaim_mode swappiness proc/sys/vm/swappiness " \
      "overcommit_memory proc/sys/vm/overcommit_memory " \
      "address_space_randomization proc/sys/kernel/randomize_va_space " \
      "nmi_watchdog proc/sys/kernel/nmi_watchdog tuned_profile etc/tuned/active_profile", part, " ")
    for (i = 1; i in part; i += 2) say("kernel." part[i], word(part[i + 1]))
    say("kernel.cpufreq_driver", by_cpu("scaling_driver"))
    say("kernel.governor", by_cpu("scaling_governor"))
    say("kernel.energy_preference", by_cpu("energy_performance_preference"))
    say("kernel.clock_lowest_allowed_mhz", by_cpu("scaling_min_freq"))
    say("kernel.clock_highest_allowed_mhz", by_cpu("scaling_max_freq"))
    say("kernel.clock_highest_possible_mhz", by_cpu("cpuinfo_max_freq"))
    value = word(cpu "intel_pstate/no_turbo")
    if (value == "") { value = word(cpu "cpufreq/boost"); if (value != "") value = 1 - value }
    say("kernel.boost", value == "" ? "" : value == 0 ? "on" : "off")
    for (i = 1; i <= states; i++) {
      key = state[i] SUBSEP "disabled"
      idle[i] = state_name[state[i]] == "" ? state[i] : state_name[state[i]]
      if (count_of[state[i]]) idle[i] = idle[i] " (disabled on " cpus_with(key) ")"
    }
    some("kernel.idle_states", states, idle)
    some("kernel.huge_pages", pages, page)
    some("kernel.mounts", mounts, mounted)

    # Rows of /proc/<pid>/limits, proc(5): what "ulimit -a" shows.
    split("locked_memory_bytes:locked memory:stack_size_bytes:stack size:address_space_bytes:" \
      "address space:data_size_bytes:data size:resident_set_bytes:resident set:" \
      "core_file_size_bytes:core file size:file_size_bytes:file size:" \
      "message_queue_bytes:msgqueue size:open_files:open files:file_locks:file locks:" \
      "processes:processes:pending_signals:pending signals:cpu_time_s:cpu time:" \
      "nice_priority:nice priority:realtime_priority:realtime priority:" \
      "realtime_timeout_us:realtime timeout", part, ":")
    for (i = 1; i in part; i += 2) say(of_login "limits." part[i], limit[part[i + 1]])
    say("limits.cpu_affinity", affinity)
    for (i = 1; i <= paths; i++) {
      path = order[i]; value = word(path)
      if (path ~ /\/(memory\.(max|high|limit_in_bytes))$/) {
        # Version 1 says "no limit" by a number near 2^63 that depends on the page size.
        if (value ~ /^[0-9]+$/ && value + 0 < 1152921504606846976)
          if (memory == "" || value + 0 < memory + 0) memory = value
      } else if (path ~ /cpu\.max$/ && split(value, part, " ") == 2) {
        if (part[1] ~ /^[0-9]+$/ && part[2] > 0) quota = least(quota, part[1] / part[2])
      } else if (path ~ /cpu\.cfs_quota_us$/ && value > 0) {
        base = path; sub(/quota_us$/, "period_us", base)
        if (word(base) > 0) quota = least(quota, value / word(base))
      }
    }
    say("limits.cgroup_cpus", quota)
    say("limits.cgroup_memory_bytes", memory)

    split("tcp_congestion_control ipv4/tcp_congestion_control tcp_receive_buffer ipv4/tcp_rmem " \
      "tcp_send_buffer ipv4/tcp_wmem socket_receive_buffer_max_bytes core/rmem_max " \
      "socket_send_buffer_max_bytes core/wmem_max queueing_discipline core/default_qdisc", part, " ")
    for (i = 1; i in part; i += 2) say("network." part[i], word("proc/sys/net/" part[i + 1]))
    for (i = 1; i <= paths; i++) {
      if (order[i] !~ /^sys\/class\/(net|infiniband)\/[^\/]*\/(operstate|fw_ver)$/) continue
      base = order[i]; sub(/\/[^\/]*$/, "", base)
      name = base; sub(/.*\//, "", name)
      if (order[i] ~ /operstate$/) {
        # Those without hardware or a route come and go with containers.
        if (!(base "/device" in is_there) && !(name in routed)) continue
        interfaces = 1
        name = "network.interface." name
        say(name ".state", word(order[i]))
        # -1 is the word of the kernel for not known.
        say(name ".speed_mbit_s", integer(base "/speed") > 0 ? integer(base "/speed") : "")
        say(name ".mtu_bytes", integer(base "/mtu"))
        device(name, base)
        continue
      }
      adapters = 1
      name = "network.infiniband." name
      say(name ".firmware", word(order[i]))
      say(name ".type", word(base "/hca_type"))
      say(name ".board", word(base "/board_id"))
      device(name, base)
      for (k = 1; k <= paths; k++) {
        if (index(order[k], base "/ports/") != 1 || order[k] !~ /\/state$/) continue
        port = order[k]; sub(/\/state$/, "", port)
        value = port; sub(/.*\//, "", value)
        value = name " port " value
        say(value ".state", word(port "/state"))
        say(value ".physical_state", word(port "/phys_state"))
        say(value ".rate", word(port "/rate"))
        say(value ".link_layer", word(port "/link_layer"))
        # Not the GIDs themselves, which name the adapter: of which kinds there are how many.
        split("", kinds); text = ""; n = 0
        for (j = 1; j <= paths; j++)
          if (index(order[j], port "/gid_attrs/types/") == 1 && word(order[j]) != "")
            if (!kinds[word(order[j])]++) kind[++n] = word(order[j])
        for (j = 1; j <= n; j++) text = text (j > 1 ? ", " : "") kinds[kind[j]] " " kind[j]
        say(value ".gids", text)
      }
    }
    if (!interfaces) say("network.interfaces", "")
    if (!adapters) say("network.infiniband", "")

    say("software.operating_system", system_name)
    say("software.c_library", libc)
    list("software.preloaded_libraries", preloads, preloaded)
    list("software.libraries", libraries, library)
    list("software.drivers", modules, module)
  }
  function least(old, new) { return old == "" || new < old ? new : old }
'
[ -z "$folder" ] || mv "$half" "$file"
