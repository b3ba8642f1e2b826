//! Names of campaigns: `nightly`, and `nightly@3` for one of those with the name.

use std::fmt;
use std::str::FromStr;

use proofhouse_source::did_you_mean;
use proofhouse_store::Store;
use proofhouse_store::model::{CampaignFilter, CampaignRow};

use crate::FleetError;

/// Letters of a name.
const MAX_NAME: usize = 100;

/// A campaign, as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignName {
    /// The name.
    pub name: String,
    /// Which of those with the name; the newest without it.
    pub number: Option<i64>,
}

impl FromStr for CampaignName {
    type Err = FleetError;

    /// ```
    /// use proofhouse_fleet::name::CampaignName;
    ///
    /// let third: CampaignName = "nightly@3".parse()?;
    /// assert_eq!((third.name.as_str(), third.number), ("nightly", Some(3)));
    /// assert!("../x".parse::<CampaignName>().is_err());
    /// # Ok::<(), proofhouse_fleet::FleetError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, FleetError> {
        let refused = || FleetError::Name(text.chars().take(MAX_NAME).collect());
        let (name, number) = match text.split_once('@') {
            Some((name, number)) => {
                let number = number.parse().ok().filter(|number| *number > 0_i64);
                (name, Some(number.ok_or_else(refused)?))
            }
            None => (text, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts || name.len() > MAX_NAME || !name.chars().all(plain) {
            return Err(refused());
        }
        Ok(Self {
            name: name.to_owned(),
            number,
        })
    }
}

impl fmt::Display for CampaignName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.number {
            Some(number) => write!(f, "@{number}"),
            None => Ok(()),
        }
    }
}

impl CampaignName {
    /// The campaign of this name in a store.
    ///
    /// # Errors
    ///
    /// Returns an error when there is none.
    pub async fn find(&self, store: &Store) -> Result<CampaignRow, FleetError> {
        let found = store.find_campaign(&self.name, self.number).await?;
        let Some(found) = found else {
            let newest = CampaignFilter {
                limit: CANDIDATES,
                ..CampaignFilter::default()
            };
            let known = store.campaigns(newest).await?;
            let same = known.iter().find(|row| row.name == self.name);
            let names = known.iter().map(|row| row.name.as_str());
            let meant = match same {
                Some(newest) => Some(shown(newest)),
                None => did_you_mean(&self.name, names).map(str::to_owned),
            };
            return Err(no_campaign(&self.to_string(), meant.as_deref()));
        };
        Ok(found)
    }
}

/// Campaigns that a name is compared with when there is none of it.
const CANDIDATES: usize = 200;

/// Says that there is no such campaign, and which may be meant.
pub(crate) fn no_campaign(name: &str, meant: Option<&str>) -> FleetError {
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`proofhouse campaigns list` shows those of the store".to_owned(),
    };
    FleetError::NoCampaign {
        name: name.to_owned(),
        help,
    }
}

/// What people call a campaign: `nightly@3`.
#[must_use]
pub fn shown(campaign: &CampaignRow) -> String {
    format!("{}@{}", campaign.name, campaign.number)
}
