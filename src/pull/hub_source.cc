#include <fmt/core.h>

#include <utility>

#include "base/plain_text.h"
#include "os/sys.h"
#include "pull/pull_names.h"
#include "pull/pull_source.h"

namespace weft {
namespace {

class RevisionSource final : public PullSource {
 public:
  RevisionSource(HubSource source, HubSettings settings, HttpReaderOptions reading)
      : source_(std::move(source)), endpoint_(settings.endpoint), hub_(std::move(settings), std::move(reading)) {}

  std::string text() const override { return text_of(source_.repository); }
  VersionKind kind() const override { return source_.repository.kind; }
  Result<std::string> name() const override { return version_name_of(source_.repository); }
  std::string revision() const override { return source_.revision; }
  std::optional<std::string> tag() const override { return tag_of_revision(source_.revision); }
  std::string key() const override { return hub_pull_key(endpoint_, source_.repository); }

  // Finds the commit first: from then on the revision may move.
  Result<PullListing> list() override {
    WEFT_TRY(const HubRevision revision, hub_.revision(source_));
    commit_ = revision.commit;
    PullListing listing;
    WEFT_TRY(listing.files, hub_.files(source_.repository, commit_));
    if (listing.files.empty())
      return Error{Errc::not_found, fmt::format("{}: no file to publish in commit {}", text(), commit_)};
    Provenance& from = listing.source;
    from.endpoint = endpoint_;
    from.repository = text();
    from.revision = source_.revision;
    from.commit = commit_;
    from.access = revision.access();
    from.listed_ns = now_ns();
    WEFT_CHECK(check_source(from));
    listing.description = description_of(endpoint_, source_, commit_);
    return listing;
  }

  Status read(const HubFile& file, Range range, const ByteSink& sink) override {
    return hub_.read(source_.repository, commit_, file, range, sink);
  }

 private:
  const HubSource source_;
  const std::string endpoint_;
  HubClient hub_;
  std::string commit_;
};

}  // namespace

std::unique_ptr<PullSource> hub_source(HubSource source, HubSettings settings, HttpReaderOptions reading) {
  return std::make_unique<RevisionSource>(std::move(source), std::move(settings), std::move(reading));
}

}  // namespace weft
