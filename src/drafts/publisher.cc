#include "drafts/publisher.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/errc_names.h"
#include "base/limits.h"
#include "base/log.h"
#include "drafts/draft_check.h"
#include "drafts/import_fields.h"
#include "drafts/publish_folder.h"
#include "os/acting_as.h"
#include "os/entries.h"
#include "os/memory_file.h"
#include "os/programs.h"
#include "os/sys.h"
#include "os/tree_walk.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

// `weft import` as a separate process, with the rights of the publishing user.
struct ImportCommand {
  std::string program;
  std::string store;
  bool trust_store = false;
  bool awaits_daemon = false;
  ImportOptions options;  // without paths: the process publishes its working directory
};

// The descriptors stay the caller's. A guard holds the lock of `lock` until the process ends.
struct ImportEnds {
  int content = -1;  // its working directory, which it publishes
  int answer = -1;   // its standard output: one JSON object
  int lock = -1;
};

// The options go through the standard input: other users can read a command line.
Result<pid_t> start_import(const ImportCommand& command, const UserIds& user, const ImportEnds& ends) {
  WEFT_CHECK(lock_fd(ends.lock, LockKind::exclusive, LockWait::no, "locking a draft"));
  const std::string options = encode_fields(command.options);
  WEFT_TRY(const Fd input, memory_file("the options of an import", std::as_bytes(std::span(options))));
  ChildProgram child{.program = command.program,
                     .words = {"weft", "import", "--json", "--quiet", "--store", command.store},
                     .user = user,
                     .directory = ends.content,
                     .input = input.get(),
                     .output = ends.answer,
                     .lock = ends.lock};
  if (command.trust_store) child.words.emplace_back("--trust-store");
  if (command.awaits_daemon) child.words.emplace_back(kAwaitDaemon);
  for (const char* word : {kOptionsOnInput, "--", "."}) child.words.emplace_back(word);
  return start_program(std::move(child));
}

constexpr std::chrono::milliseconds kPauseMin{1}, kPauseMax{20};
constexpr int kStartsMax = 2;                       // of one import
constexpr std::chrono::minutes kForgottenAfter{2};  // the kernel resends to a new server, which starts at once

// Returns once the import has ended. If `goes_on` ends the publish, interrupts the import first and returns that error.
Status wait_for_import(const PublishFolder& folder, const GoesOn& goes_on) {
  auto time = kPauseMin;
  Status over;
  while (!folder.ended()) {
    std::this_thread::sleep_for(time);
    time = std::min(2 * time, kPauseMax);
    Status now = goes_on();
    if (now.ok() || !over.ok() || folder.child == 0) continue;
    interrupt_program(folder.child);
    over = std::move(now);
  }
  return over;
}

// Returns the failure that the import's answer names.
Status outcome_of(const JsonValue& answer) {
  if (answer.find("error") == nullptr) return {};
  const auto code = answer.text("error");
  const auto message = answer.text("message");
  return Error{errc_named(code.ok() ? *code : "").value_or(Errc::internal),
               message.ok() ? *message : "the import failed"};
}

// False if the version may be published without the answer saying so: the import died, or weftd did under it.
bool is_final(const std::optional<JsonValue>& answer) {
  if (!answer) return false;
  const Status outcome = outcome_of(*answer);
  return outcome.ok() || outcome.error().message.find(kOutcomeUnknown) == std::string::npos;
}

// Returns the error of a publish that an earlier import may have made.
Error doubted(Error error) {
  if (error.message.find(kOutcomeUnknown) == std::string::npos) error.message += fmt::format("; {}", kOutcomeUnknown);
  return error;
}

// True if the entry has got the name `as` in `dir`, or a unique one because another draft has that name.
bool move_back(int from, const std::string& inner, int dir, const std::string& as, const std::string& unique) {
  return rename_at(from, inner, dir, as, RENAME_NOREPLACE).ok() ||
         rename_at(from, inner, dir, unique, RENAME_NOREPLACE).ok();
}

}  // namespace

std::optional<PublishName> publish_name(std::string_view entry) {
  const auto at = entry.find('@');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  return PublishName{std::string(entry.substr(0, at)), std::string(entry.substr(at + 1))};
}

Status DraftPublisher::publish(PublishOrder order, const GoesOn& goes_on) {
  PublishFolder folder;
  folder.name = folder_name(order.request, options_.mount);
  Status done = take(order, folder);
  if (done.ok() && folder.over) return {};
  if (done.ok()) done = run(order, folder, goes_on);
  if (done.ok()) return finish(order, folder), Status{};
  if (folder.fd.valid() && !put_back(order, folder).ok())
    log_error("{}: the draft stays in drafts/publishing/{}", order.name, folder.name);
  return done;
}

Result<Fd> DraftPublisher::open_publishing() const {
  return open_directory_at(tree_.folder(), "publishing");
}

Result<bool> DraftPublisher::open_folder(const UserIds& user, PublishFolder& folder) {
  WEFT_TRY(const Fd publishing, open_publishing());
  const Status made = make_directory_at(publishing.get(), folder.name, 0700);
  if (!made.ok() && made.error().code != Errc::exists) return made.error();
  WEFT_CHECK(folder.open(publishing.get()));
  WEFT_CHECK(lock_fd(folder.servers.get(), LockKind::shared, LockWait::yes, folder.name));
  WEFT_CHECK(folder.make_held(user));
  return made.ok();
}

// An existing folder belongs to the same request: an earlier server began it.
Status DraftPublisher::take(PublishOrder& order, PublishFolder& folder) {
  WEFT_TRY(const bool made, open_folder(order.user, folder));
  const auto before = made ? Error{Errc::not_found, "no order"} : order_in(folder.fd.get());
  if (before.ok() && folder.holds(*before)) {
    order.file = before->file;
    return {};
  }
  folder.over = !made && is_published(folder.fd.get());
  return folder.over ? Status{} : move_in(order, folder);
}

// The user's rights decide whether the draft may move. The order is written before the draft moves.
Status DraftPublisher::move_in(PublishOrder& order, const PublishFolder& folder) {
  WEFT_TRY(const Fd dir, find_draft(order));
  WEFT_CHECK(write_order(folder.fd.get(), order));
  const ActingAs user(order.user);
  if (order.file) WEFT_CHECK(ensure_directory_at(folder.held.get(), kContent, 0700));
  const std::string to = order.file ? std::string(kContent) + "/" + order.name : kContent;
  WEFT_CHECK(rename_at(dir.get(), order.name, folder.held.get(), to, RENAME_NOREPLACE));
  if (order.file) static_cast<void>(remove_at(dir.get(), order.name + kDraftErrorFile));  // of an earlier attempt
  return {};
}

// Opens the directory of the draft, and finds out whether the draft is a file.
Result<Fd> DraftPublisher::find_draft(PublishOrder& order) {
  const ActingAs user(order.user);
  WEFT_TRY(const DraftFound draft, tree_.lookup(order.dir, order.name));
  WEFT_TRY(Fd dir, tree_.open_directory(order.dir));
  order.file = S_ISREG(draft.st.st_mode);
  if (!order.file && !S_ISDIR(draft.st.st_mode))
    return Error{Errc::invalid, order.name + ": expected a file or a directory"};
  return dir;
}

Result<ImportOptions> DraftPublisher::check(const PublishOrder& order, int content, const GoesOn& goes_on) const {
  WEFT_TRY(auto facts, check_draft(content, goes_on));
  DraftFacts said = std::move(facts).value_or(DraftFacts());
  ImportOptions options;
  options.name = order.model;
  options.inherit = std::move(said.inherit);
  options.take = order.stays.ino != 0 ? Take::share : Take::move;
  const std::string& durability = said.durability.empty() ? options_.durability : said.durability;
  if (!durability.empty()) {
    WEFT_TRY(options.durability, parse_durability(durability, kDraftFactsFile));
  }
  options.parents = std::move(said.parents);
  if (!order.tag.empty()) options.tags.push_back(order.tag);
  options.tags.insert(options.tags.end(), said.tags.begin(), said.tags.end());
  options.message = std::move(said.message);
  options.metrics = said.metrics.empty() ? trainer_metrics(content) : std::move(said.metrics);
  options.keep = said.keep;
  return options;
}

Status DraftPublisher::start(const PublishOrder& order, PublishFolder& folder, int content, ImportOptions options) {
  const Status moved = rename_at(content, kDraftFactsFile, folder.fd.get(), kDraftFactsFile);
  if (!moved.ok() && moved.error().code != Errc::not_found) return moved;
  const bool is_restart = has_entry(folder.fd.get(), kAnswer);
  WEFT_TRY(const Fd answer, open_at(folder.fd.get(), kAnswer, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  const ImportCommand command{options_.program, options_.store, options_.trust_store, is_restart, std::move(options)};
  const auto child = start_import(command, order.user, {content, answer.get(), folder.lock.get()});
  if (!child.ok()) return refuse(content, child.error());
  folder.child = *child;
  log_debug(LogCategory::drafts, "draft {} of user {}: process {} publishes it as {}", folder.name, order.user.uid,
            *child, order.model);
  // The child holds the lock through its open file description. A second one tells when the child ends.
  auto lock = open_at(folder.fd.get(), kLock, O_RDWR);
  folder.lock = lock.ok() ? std::move(lock).value() : Fd();
  return {};
}

// An import that ends without a final answer may have published the version. So it runs once more: the draft is still
// whole, and an import of content that the newest version has already answers with that version.
Status DraftPublisher::run(const PublishOrder& order, PublishFolder& folder, const GoesOn& goes_on) {
  WEFT_TRY(const Fd content, folder.open_content());
  std::optional<JsonValue> answer;
  bool in_doubt = false;  // an earlier import may have published it
  const auto refused = [&](const Error& error) { return refuse(content.get(), in_doubt ? doubted(error) : error); };
  for (int starts = 0; starts < kStartsMax && !is_final(answer); ++starts) {
    in_doubt = in_doubt || starts > 0;
    if (folder.ended() && !is_final(said_in(folder.fd.get()))) {
      in_doubt = in_doubt || has_entry(folder.fd.get(), kAnswer);
      folder.restore_facts(content.get());
      auto options = check(order, content.get(), goes_on);
      if (!options.ok()) return refused(options.error());
      WEFT_CHECK(start(order, folder, content.get(), std::move(options).value()));
    }
    const Status waited = wait_for_import(folder, goes_on);
    answer = said_in(folder.fd.get());
    if (!waited.ok() && (!answer || !outcome_of(*answer).ok())) return refused(waited.error());
  }
  const Status outcome =
      answer ? outcome_of(*answer) : Error{Errc::io, options_.program + ": it did not run, or ended without an answer"};
  return outcome.ok() ? outcome : refused(outcome.error());
}

// The folder and the answer stay for a while: the kernel may resend the request.
void DraftPublisher::finish(const PublishOrder& order, const PublishFolder& folder) {
  log_info("{} published by user {}", order.model, order.user.uid);
  // the directory is a namespace from now on
  if (order.to != 0 && !tree_.is_shared(order.to)) tree_.share_directory(order.to);
  const Status gone = remove_tree_at(folder.held.get(), kContent, "drafts/publishing/" + folder.name);
  if (!gone.ok()) log_warning("{}", gone.error().message);
}

Status DraftPublisher::forget(const PublishFolder& folder) {
  const Status gone = remove_tree_at(tree_.folder(), "publishing/" + folder.name, "drafts/publishing/" + folder.name);
  if (!gone.ok()) log_warning("{}", gone.error().message);
  return gone;
}

// If another draft has taken the name, the draft gets a unique one.
Status DraftPublisher::put_back(const PublishOrder& order, PublishFolder& folder) {
  const auto content = folder.open_content();
  if (!content.ok() || !folder.holds(order)) return forget(folder);
  folder.restore_facts(content->get());
  const int from = order.file ? content->get() : folder.held.get();
  const std::string inner = order.file ? order.name : kContent;
  const std::string unique = order.name + "." + folder.name;
  auto dir = tree_.open_directory(order.dir);
  bool is_back = false;
  if (dir.ok()) {
    const ActingAs user(order.user);  // this user may lack the right to write to `dir`
    is_back = move_back(from, inner, dir->get(), order.name, unique);
  }
  if (!is_back) {
    dir = tree_.open_directory(kNewIno);
    if (!dir.ok()) return dir.error();
    if (!move_back(from, inner, dir->get(), order.name, unique))
      return Error{Errc::io, order.name + ": no name in new/ is free for it"};
  }
  if (order.file) {
    const ActingAs user(order.user);  // another user's file may have this name
    static_cast<void>(rename_at(from, kDraftErrorFile, dir->get(), order.name + kDraftErrorFile));
  }
  return forget(folder);
}

// The age of a folder says nothing: an import may have run for hours before its server died a moment ago. The clock of
// the machine does not matter: a server counts the minutes itself.
void DraftPublisher::recover(Clock::time_point now) {
  std::map<std::string, Clock::time_point> abandoned;
  each_folder([&](PublishFolder& folder) {
    if (!lock_fd(folder.servers.get(), LockKind::exclusive, LockWait::no, folder.name).ok() || !folder.ended()) return;
    const auto known = abandoned_.find(folder.name);
    const Clock::time_point since = known == abandoned_.end() ? now : known->second;
    if (since + kForgottenAfter > now)
      abandoned.emplace(folder.name, since);
    else
      recover_one(folder);
  });
  abandoned_ = std::move(abandoned);
}

// Skips the folders that cannot be opened.
void DraftPublisher::each_folder(const std::function<void(PublishFolder& folder)>& visit) const {
  const auto publishing = open_publishing();
  if (!publishing.ok()) return;
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    PublishFolder folder;
    folder.name = entry.name;
    if (folder.open(publishing->get()).ok()) visit(folder);
    return WalkNext::pass;
  };
  walk.failed = pass_failed;
  static_cast<void>(walk_tree(*publishing, "drafts/publishing", walk));
}

std::vector<BegunPublish> DraftPublisher::begun_before() const {
  std::vector<BegunPublish> all;
  each_folder([&](PublishFolder& folder) {
    auto order = order_in(folder.fd.get());
    if (order.ok() && order->thread != 0 && folder.name == folder_name(order->request, options_.mount))
      all.push_back({std::move(*order), is_published(folder.fd.get())});
  });
  return all;
}

Status DraftPublisher::answer(PublishOrder order, std::uint64_t request) {
  order.answered = request;
  WEFT_TRY(const Fd publishing, open_publishing());
  WEFT_TRY(const Fd folder, open_directory_at(publishing.get(), folder_name(order.request, options_.mount)));
  return write_order(folder.get(), order);
}

void DraftPublisher::recover_one(PublishFolder& folder) {
  const auto order = order_in(folder.fd.get());
  if (!order.ok()) {
    if (!folder.open_content().ok()) static_cast<void>(forget(folder));
  } else if (order->stays.ino != 0) {
    return;
  } else if (is_published(folder.fd.get())) {
    static_cast<void>(forget(folder));
  } else if (put_back(*order, folder).ok()) {
    log_warning("{}: a publish that was cut short is a draft again", order->name);
  }
}

}  // namespace weft
