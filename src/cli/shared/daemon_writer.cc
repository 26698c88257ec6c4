// A daemon has the store: it writes. This process opens the files that it publishes, with its own rights.
#include <fcntl.h>

#include <utility>

#include "cli/shared/daemon_call.h"
#include "cli/shared/writer.h"
#include "publish/gather.h"
#include "publish/import_sources.h"
#include "weft/repair.h"

namespace weft {
namespace {

// Answers what the daemon asks while it imports.
class Conversation {
 public:
  Conversation(const std::vector<SourceFile>& files, Progress& progress) : files_(files), shown_(progress) {}

  Status answer(const JsonValue& event, const control::SendMore& more) {
    WEFT_TRY(const ImportQuestion question, decode_fields<ImportQuestion>(event));
    if (question.files) return list(*question.files, more);
    if (question.open) return open(*question.open, more);
    return shown_.show(event);
  }

 private:
  Status check(std::uint64_t number) const {
    if (number < files_.size()) return {};
    return Error{Errc::invalid, fmt::format("weftd: asked for file {} of {}", number, files_.size())};
  }

  Status list(std::uint64_t first, const control::SendMore& more) const {
    WEFT_CHECK(check(first));
    return more(encode_files(files_, first), {});
  }

  // What cannot be opened ends the import, by the daemon's word: it cleans up first.
  Status open(std::uint64_t number, const control::SendMore& more) const {
    WEFT_CHECK(check(number));
    auto fd = open_to_read(files_[number].where);
    if (!fd.ok()) return more(encode_fields(OpenFailure{fd.error()}), {});
    std::vector<Fd> fds;
    fds.push_back(std::move(fd).value());
    return more("{}", std::move(fds));
  }

  const std::vector<SourceFile>& files_;
  ShownProgress shown_;
};

class DaemonWriter final : public StoreWriter {
 public:
  DaemonWriter(const Context& context, std::unique_ptr<control::Client> daemon)
      : context_(context), daemon_(std::move(daemon)) {}

  Result<Store*> store() override {
    if (!store_) {
      WEFT_TRY(store_, context_.open_to_read());
    }
    return store_.get();
  }

  Result<ImportReport> import(const ImportOptions& options, Progress& progress) override {
    WEFT_CHECK(check_description(options));
    WEFT_TRY(const auto files, gather_sources(options.paths, context_.store_path()));
    Conversation conversation(files, progress);
    control::CallOptions call;
    call.on_event = [&](const control::Message& event, const control::SendMore& more) {
      return conversation.answer(event.body, more);
    };
    const ImportRequest request{options, files.size()};
    WEFT_TRY(const control::Answer answer, context_.ask(*daemon_, "import", encode_fields(request), std::move(call)));
    return decode_fields<ImportReport>(answer.body);
  }

  Result<VersionName> tag(const TagRequest& request) override { return ask<VersionName>("tag", request); }

  Status remove(const RemoveRequest& request, const std::function<void(const VersionName&)>& removed) override {
    control::CallOptions options;
    options.on_event = [&](const control::Message& event, const control::SendMore& /*more*/) -> Status {
      WEFT_TRY(const VersionName version, decode_fields<VersionName>(event.body));
      removed(version);
      return {};
    };
    WEFT_CHECK(context_.ask(*daemon_, "rm", encode_fields(request), std::move(options)));
    return {};
  }

  Result<GcOutcome> collect(const GcOptions& options, Progress& progress) override {
    return ask<GcOutcome>("gc", options, progress);
  }

  Status pin(const PinRequest& request) override {
    WEFT_CHECK(ask<Nothing>("pin", request));
    return {};
  }

  // The daemon asks the origin and the peers.
  Result<std::vector<std::string>> repair(Store& store, const std::vector<DamagedBlob>& damaged,
                                          std::vector<std::string> from, Progress& progress) override {
    const TakeBlob take = [&](const ContentId& id, int fd, std::uint64_t offset, std::string_view) -> Status {
      control::CallOptions options;
      options.cancelled = context_.patience().cancelled;
      std::vector<Fd> fds;
      fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
      WEFT_CHECK(daemon_->call("repair", encode_fields(RepairRequest{id, offset}), std::move(fds), options));
      return {};
    };
    WEFT_TRY(const auto missing, search_blobs(store, damaged, from, take, progress));
    std::vector<std::string> left;
    for (const DamagedBlob& blob : missing) {
      const auto answer = ask<Nothing>("repair", RepairRequest{blob.id, 0}, progress);
      if (answer.ok()) continue;
      if (answer.error().code == Errc::permission || answer.error().code == Errc::cancelled) return answer.error();
      left.push_back(fmt::format("{}; not repaired: {}", blob.what, answer.error().message));
    }
    return left;
  }

 private:
  template <class Answer, class Request>
  Result<Answer> ask(std::string_view name, const Request& request, Progress& progress = no_progress()) {
    return call_daemon<Answer>(context_, *daemon_, name, request, progress);
  }

  const Context& context_;
  const std::unique_ptr<control::Client> daemon_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<StoreWriter> make_daemon_writer(const Context& context, std::unique_ptr<control::Client> daemon) {
  return std::make_unique<DaemonWriter>(context, std::move(daemon));
}

}  // namespace weft
