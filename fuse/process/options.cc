#include "fuse/process/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "os/mounts.h"
#include "weft/store/publish.h"

namespace weft {
namespace {

// Options that mount(8), fstab or libfuse allow for any file system. They have no effect here.
constexpr std::array kIgnored{"ro",         "rw",         "auto",   "noauto",     "user",       "nouser",
                              "users",      "owner",      "group",  "nofail",     "_netdev",    "nosuid",
                              "nodev",      "exec",       "dev",    "suid",       "defaults",   "relatime",
                              "norelatime", "noatime",    "atime",  "nodiratime", "diratime",   "strictatime",
                              "lazytime",   "nolazytime", "sync",   "async",      "dirsync",    "silent",
                              "loud",       "mand",       "nomand", "iversion",   "noiversion", "default_permissions"};

constexpr std::uint64_t kSecondsMax = 86400;
constexpr std::string_view kServe = "--serve=";
constexpr std::string_view kSupervise = "--supervise=";
constexpr std::string_view kAnnounce = "--announce=";
constexpr std::string_view kLogFile = "--log-file=";  // as option log=, for paths with a comma

bool ignored(std::string_view option) {
  return option.empty() || option == "auto_unmount" || option.starts_with("x-") || option.starts_with("X-") ||
         option.starts_with("comment=") || option.starts_with("uhelper=") || option.starts_with("helper=") ||
         option.starts_with("fsname=") || option.starts_with("subtype=") ||
         std::find(kIgnored.begin(), kIgnored.end(), option) != kIgnored.end();
}

Error usage(std::string message) {
  return Error{Errc::invalid, std::move(message)};
}

Result<std::uint32_t> parse_id(std::string_view key, std::string_view value) {
  const auto number = parse_u64(value);
  if (!number || *number >= 0xffffffffU) return usage(fmt::format("{}={}: expected a number", key, printable(value)));
  return static_cast<std::uint32_t>(*number);
}

Result<std::uint64_t> parse_bytes_max(std::string_view key, std::string_view value) {
  const auto bytes = parse_bytes(value);
  if (!bytes) return usage(fmt::format("{}={}: expected a size, as 0 or 20G", key, printable(value)));
  return *bytes;
}

Result<mode_t> parse_umask(std::string_view value) {
  unsigned mode = 0;
  const bool octal = !value.empty() && value.size() <= 5 &&
                     std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '7'; });
  for (const char c : value) mode = mode * 8 + static_cast<unsigned>(c - '0');
  if (!octal || mode > 0777)
    return usage(fmt::format("umask={}: expected an octal number up to 777", printable(value)));
  return static_cast<mode_t>(mode);
}

Status set_cold(MountOptions& options, std::string_view value) {
  options.cold = cold_policy_named(value);
  if (!options.cold) return usage(fmt::format("cold={}: expected auto, stream or fetch", printable(value)));
  return {};
}

Result<bool> parse_switch(std::string_view key, std::string_view value) {
  if (value != "on" && value != "off") return usage(fmt::format("{}={}: expected on or off", key, printable(value)));
  return value == "on";
}

Status set_log_level(MountOptions& options, std::string_view value) {
  options.log_level = value;
  std::ranges::replace(options.log_level, ':', ',');  // a comma ends an option of mount(8)
  if (const Status known = check_log_levels(options.log_level); !known.ok())
    return usage(fmt::format("loglevel={}: {}", printable(value), known.error().message));
  return {};
}

Result<std::uint32_t> parse_seconds(std::string_view key, std::string_view value) {
  const auto seconds = parse_u64(value);
  if (!seconds || *seconds > kSecondsMax)
    return usage(fmt::format("{}={}: expected seconds up to {}", key, printable(value), kSecondsMax));
  return static_cast<std::uint32_t>(*seconds);
}

// Options without a value.
constexpr std::pair<std::string_view, bool MountOptions::*> kFlags[] = {
    {"noexec", &MountOptions::no_exec},         {"allow_other", &MountOptions::allow_other},
    {"nonempty", &MountOptions::non_empty},     {"xattr", &MountOptions::xattr},
    {"announce", &MountOptions::announce},      {"publish", &MountOptions::publish},
    {"trust_store", &MountOptions::trust_store}};

bool set_flag(MountOptions& options, std::string_view key) {
  const auto* const flag = std::ranges::find(kFlags, key, [](const auto& known) { return known.first; });
  if (flag == std::end(kFlags)) return false;
  options.*flag->second = true;
  options.announce = options.announce || options.publish;
  return true;
}

Status set_value(MountOptions& options, std::string_view key, std::string_view value) {
  if (key == "cold") return set_cold(options, value);
  if (key == "loglevel") return set_log_level(options, value);
  if (key == "log") {
    if (value.empty()) return usage("log=: expected a file");
    options.log_file = value;
  } else if (key == "record_reads") {
    WEFT_TRY(options.record_reads, parse_switch(key, value));
  } else if (key == "passthrough") {
    WEFT_TRY(options.passthrough, parse_switch(key, value));
  } else if (key == "stall") {
    WEFT_TRY(options.stall_s, parse_seconds(key, value));
  } else if (key == "attr_timeout") {
    WEFT_TRY(options.attr_timeout_s, parse_seconds(key, value));
  } else if (key == "assembly_cache_max") {
    WEFT_TRY(options.assembly_cache_max, parse_bytes_max(key, value));
  } else if (key == "durability") {
    WEFT_CHECK(parse_durability(value, "durability="));
    options.durability = value;
  } else if (key == "drafts_max") {
    WEFT_TRY(options.drafts_max, parse_bytes_max(key, value));
  } else if (key == "uid") {
    WEFT_TRY(options.uid, parse_id(key, value));
  } else if (key == "gid") {
    WEFT_TRY(options.gid, parse_id(key, value));
  } else if (key == "umask") {
    WEFT_TRY(options.umask, parse_umask(value));
  } else {
    return usage(
        fmt::format("unknown option {}={}; remove it, also from /etc/fstab", printable(key), printable(value)));
  }
  return {};
}

bool is_security(std::string_view key) {
  return key == "context" || key == "fscontext" || key == "defcontext" || key == "rootcontext";
}

// Splits at commas outside of quotes: the context of SELinux may have commas, and then mount(8) passes it in quotes.
std::vector<std::string_view> split_options(std::string_view list) {
  std::vector<std::string_view> options;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '"') quoted = !quoted;
    if (i < list.size() && (quoted || list[i] != ',')) continue;
    options.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return options;
}

Status set_option(MountOptions& options, std::string_view option, bool sloppy) {
  if (option == "allow_root") return usage("allow_root: weft has no such mode; use allow_other");
  if (is_security(option.substr(0, option.find('='))) && option.find('=') != std::string_view::npos) {
    options.security += fmt::format("{}{}", options.security.empty() ? "" : ",", option);
    return {};
  }
  if (ignored(option) || set_flag(options, option)) return {};
  const auto equals = option.find('=');
  const bool known_key = equals != std::string_view::npos;
  Status status =
      known_key ? set_value(options, option.substr(0, equals), option.substr(equals + 1))
                : Status(usage(fmt::format("unknown option {}; remove it, also from /etc/fstab", printable(option))));
  if (!status.ok() && sloppy && status.error().message.starts_with("unknown")) return {};
  return status;
}

// The command line split into words, before -o is parsed (a later -s applies to an earlier -o).
struct Words {
  std::vector<std::string_view> positional;
  std::vector<std::string_view> option_lists;
  bool foreground = false;
  bool sloppy = false;
  std::optional<Action> other;
  std::string_view inherited;  // the word --serve=…, --supervise=… or --announce=…
  std::string_view log_file;
};

Result<std::string_view> argument_of(std::span<const char* const> arguments, std::size_t& index) {
  const std::string_view word = arguments[index];
  if (word.size() > 2) return word.substr(2);
  if (index + 1 == arguments.size()) return usage(fmt::format("{} needs an argument", word));
  return std::string_view(arguments[++index]);
}

Status read_letters(Words& words, std::string_view letters) {
  for (const char letter : letters) {
    switch (letter) {
      case 'f':
        words.foreground = true;
        break;
      case 's':
        words.sloppy = true;
        break;
      case 'n':
      case 'v':
        break;
      case 'h':
        words.other = Action::help;
        break;
      case 'V':
        words.other = Action::version;
        break;
      default:
        return usage(fmt::format("unknown option -{}", printable({&letter, 1})));
    }
  }
  return {};
}

Status read_word(Words& words, std::span<const char* const> arguments, std::size_t& index) {
  const std::string_view word = arguments[index];
  if (word == "--help")
    words.other = Action::help;
  else if (word == "--version")
    words.other = Action::version;
  else if (word.starts_with(kServe) || word.starts_with(kSupervise) || word.starts_with(kAnnounce))
    words.inherited = word;
  else if (word.starts_with(kLogFile))
    words.log_file = word.substr(kLogFile.size());
  else if (word.starts_with("--"))
    return usage(fmt::format("unknown option {}", printable(word)));
  else if (word.starts_with("-o")) {
    WEFT_TRY(auto list, argument_of(arguments, index));
    words.option_lists.push_back(list);
  } else if (word.starts_with("-t") || word.starts_with("-N")) {
    WEFT_CHECK(argument_of(arguments, index));
  } else if (word.size() > 1 && word.starts_with('-')) {
    return read_letters(words, word.substr(1));
  } else {
    words.positional.push_back(word);
  }
  return {};
}

Status set_places(MountOptions& options, const std::vector<std::string_view>& positional, const Caller& caller) {
  if (positional.empty() || positional.size() > 2)
    return usage(fmt::format("expected STORE DIR, got {} arguments", positional.size()));
  options.directory = positional.back();
  options.store = positional.size() == 2 ? std::string(positional.front()) : caller.store;
  if (options.store.empty()) return usage("no store: name it before DIR, or set WEFT_STORE");
  if (options.directory.empty()) return usage("the mount point's name is empty");
  return {};
}

// Refuses options of a mount that another process has made, if that process alone can choose them. Announcing walks to
// a directory, and writes to the mount.
Status check_passed_options(const MountOptions& options) {
  if (options.announce)
    return usage(fmt::format("{}: {} needs a mount that mount.weft makes; name a directory", options.directory,
                             options.publish ? "publish" : "announce"));
  if (options.no_exec || !options.security.empty())
    return usage(fmt::format("{}: {}: an option for the program that mounts", options.directory,
                             options.no_exec ? "noexec" : printable(options.security)));
  return {};
}

// Parses "--serve=3,4,5" and the like.
Status set_inherited(CommandLine& line, std::string_view word) {
  if (word.empty()) return {};
  std::vector<int*> places = {&line.announced_state};
  line.action = Action::announce;
  if (word.starts_with(kServe)) {
    places = {&line.ends.channel, &line.ends.state, &line.ends.open};
    line.action = Action::serve;
  } else if (word.starts_with(kSupervise)) {
    InheritedEnds& all = line.inherited;
    places = {&all.device, &all.state, &all.open, &all.channel, &all.door, &all.client, &all.server_pid};
    line.action = Action::supervise;
  }
  const auto numbers = split(word.substr(word.find('=') + 1), ',');
  if (numbers.size() != places.size()) return usage(fmt::format("{}: expected {} numbers", word, places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto number = parse_u64(numbers[i]);
    if (!number || *number > INT_MAX) return usage(fmt::format("{}: expected numbers", printable(word)));
    *places[i] = static_cast<int>(*number);
  }
  return {};
}

}  // namespace

Result<CommandLine> parse_command_line(std::span<const char* const> arguments, const Caller& caller) {
  Words words;
  for (std::size_t i = 0; i < arguments.size(); ++i) WEFT_CHECK(read_word(words, arguments, i));
  CommandLine line;
  if (words.other) {
    line.action = *words.other;
    return line;
  }
  MountOptions& options = line.mount;
  options.uid = caller.uid;
  options.gid = caller.gid;
  options.allow_other = caller.uid == 0;
  options.foreground = words.foreground;
  WEFT_CHECK(set_places(options, words.positional, caller));
  for (const std::string_view list : words.option_lists)
    for (const std::string_view option : split_options(list)) WEFT_CHECK(set_option(options, option, words.sloppy));
  // The server of an ordinary user writes with that user's rights for every caller, so drafts would not be private.
  if (options.publish && options.allow_other && caller.uid != 0)
    return usage(
        "publish with allow_other needs root; mount without allow_other, and each user with a mount of their own");
  if (!options.security.empty() && caller.uid != 0)
    return usage(fmt::format("{}: needs root", printable(options.security)));
  if (names_descriptor(options.directory)) WEFT_CHECK(check_passed_options(options));
  if (!words.log_file.empty()) options.log_file = words.log_file;
  WEFT_CHECK(set_inherited(line, words.inherited));
  return line;
}

std::vector<std::string> to_words(const MountOptions& options) {
  std::string levels = options.log_level;
  std::ranges::replace(levels, ',', ':');
  std::string list = fmt::format("uid={},gid={},umask={:o},attr_timeout={},loglevel={},stall={}", options.uid,
                                 options.gid, options.umask, options.attr_timeout_s, levels, options.stall_s);
  if (options.cold) list += fmt::format(",cold={}", name_of(*options.cold));
  if (!options.durability.empty()) list += ",durability=" + options.durability;
  if (options.drafts_max) list += fmt::format(",drafts_max={}", *options.drafts_max);
  if (options.assembly_cache_max) list += fmt::format(",assembly_cache_max={}", *options.assembly_cache_max);
  if (!options.record_reads) list += ",record_reads=off";
  if (!options.passthrough) list += ",passthrough=off";
  if (!options.security.empty()) list += "," + options.security;
  for (const auto& [name, flag] : kFlags)
    if (options.*flag) list += fmt::format(",{}", name);
  std::vector<std::string> words = {options.store, options.directory, "-o", std::move(list)};
  if (!options.log_file.empty()) words.push_back(std::string(kLogFile) + options.log_file);
  if (options.foreground) words.emplace_back("-f");
  return words;
}

std::string help_text() {
  return R"(usage: mount.weft [STORE] DIR|/dev/fd/N [-o OPTION[,OPTION]...] [-fnsv]
       mount -t weft STORE DIR [-o OPTION[,OPTION]...]

Mounts the weft store in the directory STORE on DIR and returns when the mount
answers. STORE may be left out if WEFT_STORE is set. With /dev/fd/N, another
program has mounted and passes its open descriptor N of /dev/fuse.

  -o OPTIONS       mount options, see below
  -f               stay in the foreground
  -s               ignore unknown mount options
  -n, -v           accepted for mount(8), without effect
  -t TYPE, -N NS   accepted for mount(8), without effect
  -h, --help       print this text and exit
  -V, --version    print the version, the build and the program's path, and exit

Mount options:
  allow_other      let other users in (default if root mounts)
  nonempty         mount on a directory that holds files; the mount hides them
  uid=N, gid=N     owner of the files shown (default: the mounting user)
  umask=MODE       permission bits to remove, octal (default: 0)
  noexec           do not allow programs to run from the mount
  announce         raise inotify events for what is published, tagged and removed
  publish          announce, and add new/, where programs write and publish (weft.7)
  durability=WHERE  of what new/ publishes: memory, local or origin (default: local)
  drafts_max=SIZE  limit of all that lies in new/ (default: a quarter of the disk)
  xattr            answer the extended attributes user.weft.* of tensors
  attr_timeout=SECONDS  keep link and block counts for this time (default: 30)
  assembly_cache_max=SIZE  limit of the cache of assembled files, such as 20G; 0: none
  cold=auto        files that are not local: fetch if about as fast as streaming
  cold=stream      each read waits only for the bytes that it reads
  cold=fetch       the first open waits for the whole file (default: as weftd is set)
  record_reads=off  read LMDB files page by page, as any other file
  passthrough=off  read all files through the server of the mount
  trust_store      as root, mount the store even if other users can write to it
  log=FILE         append messages to FILE
  loglevel=LEVELS  debug, info (default), warning or error, then :CATEGORY=debug
  stall=SECONDS    replace a server that does not answer for this time (default: 60)

Exit status: 0 mounted, 1 wrong usage, 32 failed.
)";
}

}  // namespace weft
