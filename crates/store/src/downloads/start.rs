//! Setting downloads to work: new ones, and those that are at rest.

use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    Downloads,
    entry::{Entry, Running},
    folder::Lock,
    job::State,
    record::Record,
    run::run,
    transfer::blocking,
};
use crate::hub::{Error, Reference};

impl Downloads {
    /// The download of a model: one that is under way, else one that now is; and whether it is new.
    pub(super) async fn begin(&self, reference: &str) -> Result<(Uuid, bool), Error> {
        let Reference {
            owner,
            name,
            revision,
        } = Reference::parse(reference)?;
        let model = format!("{owner}/{name}");
        self.refuse_existing(&model).await?;
        let known = self
            .0
            .jobs()
            .values()
            .find(|entry| entry.record.model == model)
            .map(|entry| (entry.record.id, entry.job()));
        match known {
            Some((id, job)) if !job.state.is_at_rest() => {
                if revision.is_some() && revision != job.revision && revision != job.commit {
                    return Err(Error::OtherRevision {
                        repo: model,
                        current: job.revision,
                    });
                }
                return Ok((id, false));
            }
            // The model was deleted since.
            Some((id, job)) if job.state == State::Done => self.0.forget(id),
            Some((id, _)) => {
                self.want(id, revision);
                self.launch(id, &model).await?;
                return Ok((id, false));
            }
            None => {}
        }
        let (folder, name) = (self.0.folder(&model), model.clone());
        let (record, lock) = blocking(move || {
            let lock = folder.lock(&name)?;
            // Another process may have begun it.
            Ok((folder.read_record()?, lock))
        })
        .await?;
        let record = record
            .filter(|record| record.model == model)
            .unwrap_or_else(|| Record::new(model, revision.clone()));
        let id = record.id;
        self.0.insert(Entry::new(record));
        self.want(id, revision);
        match self.work(id, lock).await {
            Ok(()) => Ok((id, true)),
            Err(error) => {
                self.0.forget(id);
                Err(error)
            }
        }
    }

    async fn refuse_existing(&self, model: &str) -> Result<(), Error> {
        let (destination, model) = (self.0.destination(model), model.to_owned());
        blocking(move || {
            if destination.exists() {
                return Err(Error::Exists(model));
            }
            Ok(())
        })
        .await
    }

    /// Takes over another revision. Files that are the same in both stay.
    fn want(&self, id: Uuid, revision: Option<String>) {
        if let Some(entry) = self.0.jobs().get_mut(&id)
            && revision.is_some()
            && revision != entry.record.revision
            && revision != entry.record.commit
        {
            entry.record.revision = revision;
            entry.record.commit = None;
        }
    }

    /// Sets a download that is at rest to work, with what other processes made of it meanwhile.
    pub(super) async fn launch(&self, id: Uuid, model: &str) -> Result<(), Error> {
        let (folder, name) = (self.0.folder(model), model.to_owned());
        let destination = self.0.destination(model);
        let found = blocking(move || {
            let lock = folder.lock(&name)?;
            if destination.exists() {
                folder.remove()?;
                return Ok(None);
            }
            Ok(Some((folder.read_record()?, lock)))
        })
        .await?;
        let Some((record, lock)) = found else {
            // Another process finished it.
            self.0.change(id, |entry| {
                entry.record.error = None;
                entry.set_state(State::Done);
            });
            self.0.forget_done();
            return Ok(());
        };
        if let Some(entry) = self.0.jobs().get_mut(&id) {
            match record.filter(|record| record.model == model) {
                Some(record) => entry.record.files = record.files,
                None => entry.record.files.clear(),
            }
        }
        self.work(id, lock).await
    }

    /// Begins the task.
    async fn work(&self, id: Uuid, lock: Lock) -> Result<(), Error> {
        let before = self.0.change(id, |entry| {
            let before = (entry.record.state, entry.record.error.take());
            entry.record.holder = Some(std::process::id());
            entry.was_interrupted = false;
            entry.is_kept = false;
            entry.set_state(State::Queued);
            before
        });
        if let Err(error) = self.0.save(id).await {
            self.0.change(id, |entry| {
                let (state, failure) = before.unwrap_or((State::Paused, None));
                entry.record.holder = None;
                entry.record.error = failure;
                entry.set_state(state);
            });
            return Err(error);
        }
        let (stop, stopped) = oneshot::channel();
        let mut jobs = self.0.jobs();
        if let Some(entry) = jobs.get_mut(&id) {
            // The task cannot end before its handle is here: it needs the lock for that.
            let task = tokio::spawn(run(self.0.clone(), id, lock, stopped));
            entry.running = Some(Running { stop, task });
        }
        Ok(())
    }
}
