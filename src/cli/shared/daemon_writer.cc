// The StoreWriter for a store with a daemon. The daemon writes; this process opens the files to publish, with its own
// rights.
#include <utility>

#include "cli/shared/daemon_call.h"
#include "cli/shared/writer.h"
#include "os/sys.h"
#include "publish/gather.h"
#include "publish/import_sources.h"
#include "weft/store/fsck.h"
#include "weft/store/repair.h"
#include "weft/store/store.h"

namespace weft {
namespace {

// After a failure to open a file the daemon fails the import.
Status send_opened(Result<Fd> fd, const control::SendMore& more) {
  if (!fd.ok()) return more(encode_fields(OpenFailure{fd.error()}), {});
  std::vector<Fd> fds;
  fds.push_back(std::move(fd).value());
  return more("{}", std::move(fds));
}

Status send_file(const SourceFile& file, const control::SendMore& more) {
  return send_opened(file.open ? file.open() : open_to_read(file.where), more);
}

Status send_arrived(const SourceFile& file, Range range, const control::SendMore& more) {
  if (!file.await) return Error{Errc::invalid, fmt::format("weftd: {} does not arrive", file.where)};
  const auto end = file.await(range);
  const Arrived arrived = end.ok() ? Arrived{*end} : Arrived{0, OpenFailure{end.error()}};
  return more(encode_fields(arrived), {});
}

// Returns a handler for the daemon's questions about these files, for the versions that it removes, and for its
// progress.
control::OnEvent answered_with(const std::vector<SourceFile>& files, std::vector<VersionName>& removed,
                               Progress& progress) {
  return [&, shown = shown_by(progress)](control::Message& message, const control::SendMore& more) -> Status {
    WEFT_TRY(const ImportEvent event, decode_fields<ImportEvent>(message.body));
    if (event.removed) return removed.push_back(*event.removed), Status{};
    if (!event.files && !event.open && !event.await) return shown(message, more);
    const std::uint64_t number = event.files ? *event.files : event.open ? *event.open : event.await->file;
    if (number >= files.size())
      return Error{Errc::invalid, fmt::format("weftd: asked for file {} of {}", number, files.size())};
    if (event.await) return send_arrived(files[number], {event.await->offset, event.await->length}, more);
    return event.files ? more(encode_files(files, number), {}) : send_file(files[number], more);
  };
}

class DaemonWriter final : public StoreWriter {
 public:
  DaemonWriter(const Context& context, std::unique_ptr<control::Client> daemon)
      : context_(context), daemon_(std::move(daemon)) {}

  Result<ImportReport> import(const ImportOptions& options) override {
    ProgressBar bar = context_.progress();
    WEFT_TRY(GatheredFiles sources, gather(options, context_.store_path()));
    const ImportRequest request{options, sources.files.size()};
    std::vector<VersionName> removed;
    WEFT_TRY(ImportReport report, ask<ImportReport>("import", request, answered_with(sources.files, removed, bar)));
    report.removed = std::move(removed);
    report.left_out = std::move(sources.left_out);
    report.moved = std::move(sources.moved);
    return report;
  }

  Result<BundleImportReport> import_bundle(const BundleFiles& files, const BundleImportOptions& options) override {
    ProgressBar bar = context_.progress();
    const BundleImportRequest request{options, files.where, files.directory};
    return ask<BundleImportReport>(
        "bundle", request,
        [&, shown = shown_by(bar)](control::Message& message, const control::SendMore& more) -> Status {
          WEFT_TRY(const BundleEvent event, decode_fields<BundleEvent>(message.body));
          if (!event.open) return shown(message, more);
          return send_opened(files.open(*event.open), more);
        });
  }

  Result<VersionName> tag(const TagRequest& request) override { return ask<VersionName>("tag", request); }
  Result<VersionName> note(const NoteRequest& request) override { return ask<VersionName>("note", request); }

  Status rename(const RenameRequest& request) override {
    WEFT_CHECK(ask<Nothing>("mv", request));
    return {};
  }

  Result<RemoveReport> remove(const RemoveRequest& request,
                              const std::function<void(const VersionName&)>& removed) override {
    return ask<RemoveReport>("rm", request, each<VersionName>(removed));
  }

  Status undelete(const UndeleteRequest& request,
                  const std::function<void(const UndeletedVersion&)>& undeleted) override {
    WEFT_CHECK(ask<Nothing>("undelete", request, each<UndeletedVersion>(undeleted)));
    return {};
  }

  Result<GcOutcome> collect(const GcOptions& options) override {
    ProgressBar bar = context_.progress();
    return ask<GcOutcome>("gc", options, shown_by(bar));
  }

  Status pin(const PinRequest& request) override {
    WEFT_CHECK(ask<Nothing>("pin", request));
    return {};
  }

  // Sends copies that are found below `from`. For the other blobs, the daemon asks the origin and the peers.
  Result<std::vector<std::string>> repair(Store& store, const std::vector<DamagedBlob>& damaged,
                                          std::vector<std::string> from) override {
    ProgressBar bar = context_.progress();
    const TakeBlob take = [&](const ContentId& id, int fd, std::uint64_t offset, std::string_view) -> Status {
      control::CallOptions options;
      options.cancelled = context_.patience().cancelled;
      std::vector<Fd> fds;
      WEFT_TRY(fds.emplace_back(), duplicate(fd, "a descriptor for the daemon"));
      WEFT_CHECK(daemon_->call("repair", encode_fields(RepairRequest{id, offset}), std::move(fds), options));
      return {};
    };
    WEFT_TRY(const auto missing, search_blobs(store, damaged, from, take, bar));
    std::vector<std::string> left;
    for (const DamagedBlob& blob : missing) {
      const auto answer = ask<Nothing>("repair", RepairRequest{blob.id, 0}, shown_by(bar));
      if (answer.ok()) continue;
      if (answer.error().code == Errc::permission || answer.error().code == Errc::cancelled) return answer.error();
      left.push_back(fmt::format("{}; not repaired: {}", blob.what, answer.error().message));
    }
    return left;
  }

 private:
  // Returns a handler that decodes each event of a call, and passes it on.
  template <class Event>
  static control::OnEvent each(const std::function<void(const Event&)>& visit) {
    return [&visit](const control::Message& event, const control::SendMore&) -> Status {
      WEFT_TRY(const Event decoded, decode_fields<Event>(event.body));
      visit(decoded);
      return {};
    };
  }

  template <class Answer, class Request>
  Result<Answer> ask(std::string_view name, const Request& request, control::OnEvent on_event = {}) {
    return call_daemon<Answer>(context_, *daemon_, name, request, std::move(on_event));
  }

  const Context& context_;
  const std::unique_ptr<control::Client> daemon_;
};

}  // namespace

std::unique_ptr<StoreWriter> make_daemon_writer(const Context& context, std::unique_ptr<control::Client> daemon) {
  return std::make_unique<DaemonWriter>(context, std::move(daemon));
}

}  // namespace weft
